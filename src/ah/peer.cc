#include "verbena/peer.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "ah/attributes.h"
#include "ah/destination_key.h"

namespace verbena {

namespace {

constexpr std::uint32_t kMostQpn = 0xffffff;
constexpr std::size_t kNowhere = ~std::size_t{0};

std::chrono::nanoseconds bounded(std::chrono::nanoseconds time) {
  return std::clamp<std::chrono::nanoseconds>(time, std::chrono::nanoseconds::zero(), std::chrono::hours(24 * 365));
}

}  // namespace

PeerTable::PeerTable(const PeerTableOptions& options) : options_(options) {
  options_.quarantine = bounded(options.quarantine);
  options_.probe_after = bounded(options.probe_after);
  options_.probe_interval = bounded(options.probe_interval);
}

std::size_t PeerTable::PlaceHash::operator()(const Place& place) const noexcept {
  Destination destination;
  destination.gid = place.gid;
  destination.lid = place.lid;
  destination.port = place.port;
  return static_cast<std::size_t>(ah::hash_of(ah::key_of(destination, 0), place.qpn));
}

PeerTable::Place PeerTable::place_of(const Destination& destination, std::uint32_t qpn) const {
  const bool global = !destination.gid.is_zero();
  return {.gid = destination.gid,
          .lid = global ? std::uint16_t{0} : destination.lid,
          .port = destination.port == 0 ? options_.port : destination.port,
          .qpn = qpn};
}

PeerStanding PeerTable::standing(const AhPeer& peer) const {
  const auto [first, last] = old_.equal_range(place_of(peer));
  const bool old = std::any_of(
      first, last, [&](const auto& entry) { return known_.at(entry.second).peer.incarnation >= peer.incarnation; });
  const auto at = current_.find(place_of(peer));
  if (at == current_.end()) return old ? PeerStanding::kQuarantined : PeerStanding::kUnknown;
  const AhPeer& there = known_.at(at->second).peer;
  if (there.incarnation == peer.incarnation) return PeerStanding::kCurrent;
  return there.incarnation < peer.incarnation ? PeerStanding::kNewer : PeerStanding::kQuarantined;
}

PeerId PeerTable::find(const Destination& destination, std::uint32_t qpn) const {
  const auto at = current_.find(place_of(destination, qpn));
  return at == current_.end() ? PeerId{} : PeerId{at->second};
}

const AhPeer* PeerTable::peer(PeerId id) const {
  const auto at = known_.find(id.value);
  return at == known_.end() ? nullptr : &at->second.peer;
}

bool PeerTable::is_current(PeerId id) const {
  const auto at = known_.find(id.value);
  return at != known_.end() && at->second.current;
}

Result<PeerId> PeerTable::introduce(const AhPeer& peer, Instant now) {
  if (peer.qpn > kMostQpn) {
    return failure(ErrorCode::kInvalidArgument, fmt::format("queue pair number {:#x} has more than 24 bits", peer.qpn));
  }
  switch (standing(peer)) {
    case PeerStanding::kCurrent:
      return find(peer.destination, peer.qpn);
    case PeerStanding::kQuarantined:
      return failure(ErrorCode::kUnavailable,
                     fmt::format("queue pair {:#x} at {} of incarnation {} was replaced or let go; a restarted peer "
                                 "tells a greater one",
                                 peer.qpn, ah::in_words(peer.destination), peer.incarnation));
    case PeerStanding::kNewer:
      quarantine(current_.at(place_of(peer)), now);
      break;
    case PeerStanding::kUnknown:
      break;
  }
  if (current_.size() >= options_.max_peers) {
    return failure(ErrorCode::kExhausted,
                   fmt::format("{} peers are known; let go of some, or raise max_peers", current_.size()));
  }
  const std::uint64_t id = next_++;
  Record record;
  record.peer = peer;
  record.at = kNowhere;
  known_.emplace(id, record);
  current_.emplace(place_of(peer), id);
  if (options_.probe_after.count() > 0) schedule(id, now + options_.probe_after);
  return PeerId{id};
}

void PeerTable::let_go(PeerId id, Instant now) {
  if (is_current(id)) quarantine(id.value, now);
}

void PeerTable::quarantine(std::uint64_t id, Instant now) {
  Record& record = known_.at(id);
  record.current = false;
  current_.erase(place_of(record.peer));
  old_.emplace(place_of(record.peer), id);
  const bool crowded = quarantined() > options_.max_peers;
  schedule(id, crowded ? now : now + options_.quarantine);
}

void PeerTable::on_heard(PeerId id, Instant now) {
  const auto at = known_.find(id.value);
  if (at == known_.end() || !at->second.current) return;
  at->second.missed = 0;
  if (options_.probe_after.count() > 0) schedule(id.value, now + options_.probe_after);
}

std::optional<PeerAction> PeerTable::poll_action(Instant now) {
  if (heap_.empty()) return std::nullopt;
  const std::uint64_t id = heap_.front();
  Record& record = known_.at(id);
  if (record.due > now) return std::nullopt;
  PeerAction action{.kind = PeerAction::Kind::kProbe, .id = PeerId{id}, .peer = record.peer, .missed = record.missed};
  if (!record.current) {
    action.kind = PeerAction::Kind::kReleased;
    unschedule(id);
    const auto [first, last] = old_.equal_range(place_of(record.peer));
    old_.erase(std::find_if(first, last, [&](const auto& entry) { return entry.second == id; }));
    known_.erase(id);
  } else if (record.missed >= options_.probes_until_dead) {
    action.kind = PeerAction::Kind::kDead;
    quarantine(id, now);
  } else {
    ++record.missed;
    schedule(id, now + options_.probe_interval);
  }
  return action;
}

std::optional<PeerTable::Instant> PeerTable::next_timeout() const {
  if (heap_.empty()) return std::nullopt;
  return known_.at(heap_.front()).due;
}

bool PeerTable::is_earlier(std::size_t a, std::size_t b) const {
  return known_.at(heap_[a]).due < known_.at(heap_[b]).due;
}

void PeerTable::schedule(std::uint64_t id, Instant due) {
  Record& record = known_.at(id);
  record.due = due;
  if (record.at == kNowhere) {
    record.at = heap_.size();
    heap_.push_back(id);
  }
  sift(record.at);
}

void PeerTable::unschedule(std::uint64_t id) {
  const std::size_t at = std::exchange(known_.at(id).at, kNowhere);
  const std::uint64_t last = heap_.back();
  heap_.pop_back();
  if (last == id) return;
  heap_[at] = last;
  known_.at(last).at = at;
  sift(at);
}

// A binary heap: moves what stands at `at` up or down to where it belongs.
void PeerTable::sift(std::size_t at) {
  const auto swap = [this](std::size_t a, std::size_t b) {
    std::swap(heap_[a], heap_[b]);
    known_.at(heap_[a]).at = a;
    known_.at(heap_[b]).at = b;
  };
  for (; at > 0 && is_earlier(at, (at - 1) / 2); at = (at - 1) / 2) swap(at, (at - 1) / 2);
  for (;;) {
    std::size_t least = at;
    for (const std::size_t child : {2 * at + 1, 2 * at + 2}) {
      if (child < heap_.size() && is_earlier(child, least)) least = child;
    }
    if (least == at) return;
    swap(at, least);
    at = least;
  }
}

}  // namespace verbena
