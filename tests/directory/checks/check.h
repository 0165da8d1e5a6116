// A program that looks at many things on a device, one after the other: each is a named check, and says how it came
// out.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "verbena/device.h"
#include "verbena/result.h"

namespace verbena::on_device {

// Ends the check that is being made, and no other.
struct Broken : std::runtime_error {
  using std::runtime_error::runtime_error;
};

inline void must(const Status& status, const char* what) {
  if (!status) throw Broken(std::string(what) + ": " + status.error().message);
}
template <class T>
T must(Result<T> made, const char* what) {
  if (!made) throw Broken(std::string(what) + ": " + made.error().message);
  return std::move(*made);
}

// What one check found.
//
// Thread-safety: none; one owner.
// Ownership:     values only.
// Errors:        what is not as it should be is kept, and told in the end.
class Findings {
 public:
  void expect(bool so, const std::string& what) {
    if (!so) wrong_.push_back(what);
  }
  template <class T>
  void expect_equal(const T& seen, const T& wanted, const std::string& what) {
    if (!(seen == wanted)) {
      wrong_.push_back(what + ": " + nlohmann::json(seen).dump() + " instead of " + nlohmann::json(wanted).dump());
    }
  }
  template <class T>
  void expect_holds(const std::string& text, const T& part) {
    expect(text.find(part) != std::string::npos, "'" + std::string(part) + "' is not in: " + text);
  }
  // For the log.
  void note(const std::string& name, nlohmann::json value) { seen_[name] = std::move(value); }

  nlohmann::json report() const { return {{"ok", wrong_.empty()}, {"wrong", wrong_}, {"seen", seen_}}; }

 private:
  nlohmann::json wrong_ = nlohmann::json::array();
  nlohmann::json seen_ = nlohmann::json::object();
};

// Two devices on one wire, and what leads from the near one to the far one.
struct World {
  Context near;
  Context far;
  std::string v4;  // of the far one
  std::string v6;
  std::string away;     // the first address of an IPv4 network that begins behind the far one, and where nobody listens
  unsigned rounds = 3;  // over a thousand peers
};

struct Check {
  const char* name;
  void (*make)(const World& world, Findings& findings);
};

}  // namespace verbena::on_device
