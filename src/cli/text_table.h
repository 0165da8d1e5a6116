// Rows of words under headings, each column as wide as its widest word.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace verbena::cli {

enum class Align { kLeft, kRight };

struct Column {
  std::string title;
  Align align = Align::kLeft;
};

class TextTable {
 public:
  explicit TextTable(std::vector<Column> columns) : columns_(std::move(columns)) {}

  // Missing words are empty; those beyond the last column are left out.
  void add_row(std::vector<std::string> words);

  bool empty() const noexcept { return rows_.empty(); }
  // Each line begins with `indent` spaces, ends with a newline and has no space before it.
  std::string render(std::size_t indent = 0) const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace verbena::cli
