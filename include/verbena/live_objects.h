// The verbs objects that this process made through Verbena and has not released, each with the place that made it.
#pragma once

#include <string>
#include <vector>

#include <infiniband/verbs.h>

#include "verbena/call_site.h"
#include "verbena/export.h"

namespace verbena {

struct LiveObject {
  std::string what;  // "queue pair 0x11"
  CallSite place;    // the call that made it
};

// Those of a protection domain: memory regions and queue pairs, the completion queues that its queue pairs use, or that
// they used last and nobody uses now, and the address handles that a directory had to leave behind at its end. Not what
// was made without Verbena.
// Thread-safety: any thread.
VERBENA_API std::vector<LiveObject> live_objects(const ibv_pd* domain);

// All of this process: protection domains, and completion queues that nobody uses, beside what is of a domain.
// Thread-safety: any thread.
VERBENA_API std::vector<LiveObject> live_objects();

// "queue pair 0x11 (made at src/main.cc:17, in run)"
VERBENA_API std::string in_words(const LiveObject& object);

namespace detail {

// `object` is the owner of the verbs object, as keeper() gives it. Of `domain` where it is not null.
VERBENA_API void note_alive(const void* object, std::string what, const CallSite& place, const ibv_pd* domain);
// `what`, with the place that made it where `object` is listed.
VERBENA_API std::string with_place(const void* object, const std::string& what);
// `user`, while it is listed, uses `object`, which is of no domain.
VERBENA_API void note_uses(const void* user, const void* object);
// A new domain: what an earlier one at this address has left is none of its own.
VERBENA_API void note_new_domain(const ibv_pd* domain) noexcept;
// The owner goes, and what it owned stays: listed from now on, whatever comes to lie at its address. Ignored where it
// is not known, as the next.
VERBENA_API void note_left_behind(const void* object) noexcept;
VERBENA_API void note_gone(const void* object) noexcept;

}  // namespace detail

}  // namespace verbena
