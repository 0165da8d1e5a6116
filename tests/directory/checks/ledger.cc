#include "ledger.h"

#include <algorithm>
#include <utility>

#include <dlfcn.h>

namespace verbena::on_device {

Ledger& Ledger::of_this_process() {
  static Ledger one;
  return one;
}

void Ledger::begin_creation() {
  const std::lock_guard lock(mutex_);
  most_creations_ = std::max(most_creations_, ++creations_);
}

void Ledger::end_creation(const ibv_ah* address, const ibv_ah_attr& attributes) {
  const std::lock_guard lock(mutex_);
  --creations_;
  if (address == nullptr) return;
  ++created_;
  alive_[address] = {attributes, 0};
  most_alive_ = std::max(most_alive_, alive_.size());
}

void Ledger::gone(const ibv_ah* address) {
  const std::lock_guard lock(mutex_);
  const auto found = alive_.find(address);
  if (found == alive_.end() || found->second.posted != 0) ++violations_;
  if (found != alive_.end()) alive_.erase(found);
}

void Ledger::posted(const ibv_ah* address) {
  const std::lock_guard lock(mutex_);
  const auto found = alive_.find(address);
  if (found == alive_.end()) {
    ++violations_;
  } else {
    ++found->second.posted;
  }
}

void Ledger::completed(const ibv_ah* address) {
  const std::lock_guard lock(mutex_);
  const auto found = alive_.find(address);
  if (found == alive_.end() || found->second.posted == 0) {
    ++violations_;
  } else {
    --found->second.posted;
  }
}

ibv_ah_attr Ledger::attributes(const ibv_ah* address) const {
  const std::lock_guard lock(mutex_);
  return alive_.at(address).attributes;
}

std::size_t Ledger::alive() const {
  const std::lock_guard lock(mutex_);
  return alive_.size();
}

std::uint64_t Ledger::created() const {
  const std::lock_guard lock(mutex_);
  return created_;
}

std::size_t Ledger::take_most_alive() {
  const std::lock_guard lock(mutex_);
  return std::exchange(most_alive_, alive_.size());
}

std::size_t Ledger::take_most_creations() {
  const std::lock_guard lock(mutex_);
  return std::exchange(most_creations_, creations_);
}

std::uint64_t Ledger::violations() const {
  const std::lock_guard lock(mutex_);
  return violations_;
}

}  // namespace verbena::on_device

// Seen before the library's own, by everything in this program.
extern "C" __attribute__((visibility("default"))) ibv_ah* ibv_create_ah(ibv_pd* pd, ibv_ah_attr* attributes) {
  static const auto next = reinterpret_cast<decltype(&ibv_create_ah)>(::dlsym(RTLD_NEXT, "ibv_create_ah"));
  auto& ledger = verbena::on_device::Ledger::of_this_process();
  const ibv_ah_attr given = *attributes;
  ledger.begin_creation();
  ibv_ah* const address = next(pd, attributes);
  ledger.end_creation(address, given);
  return address;
}

extern "C" __attribute__((visibility("default"))) int ibv_destroy_ah(ibv_ah* address) {
  static const auto next = reinterpret_cast<decltype(&ibv_destroy_ah)>(::dlsym(RTLD_NEXT, "ibv_destroy_ah"));
  verbena::on_device::Ledger::of_this_process().gone(address);
  return next(address);
}
