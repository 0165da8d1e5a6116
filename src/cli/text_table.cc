#include "cli/text_table.h"

#include <algorithm>
#include <utility>

namespace verbena::cli {
namespace {

constexpr std::size_t kGap = 2;

void append_padded(std::string& line, const std::string& word, std::size_t width, Align align) {
  const std::size_t padding = width - word.size();
  if (align == Align::kRight) line.append(padding, ' ');
  line += word;
  if (align == Align::kLeft) line.append(padding, ' ');
}

void end_line(std::string& text, std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  text += line + '\n';
}

}  // namespace

void TextTable::add_row(std::vector<std::string> words) {
  words.resize(columns_.size());
  rows_.push_back(std::move(words));
}

std::string TextTable::render(std::size_t indent) const {
  std::vector<std::size_t> widths;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    std::size_t width = columns_[i].title.size();
    for (const auto& row : rows_) width = std::max(width, row[i].size());
    widths.push_back(width);
  }
  std::string text;
  const auto append_line = [&](auto word_at) {
    std::string line(indent, ' ');
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      if (i > 0) line.append(kGap, ' ');
      append_padded(line, word_at(i), widths[i], columns_[i].align);
    }
    end_line(text, std::move(line));
  };
  append_line([&](std::size_t i) -> const std::string& { return columns_[i].title; });
  for (const auto& row : rows_) append_line([&](std::size_t i) -> const std::string& { return row[i]; });
  return text;
}

}  // namespace verbena::cli
