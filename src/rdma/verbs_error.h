// An errno of a verbs call, as an Error in words: which call, on what, what the system said, and what to do.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "verbena/result.h"

namespace verbena::rdma {

// What a caller can make of an errno, whatever the call.
ErrorCode code_of(int system_errno) noexcept;

// What usually helps; empty where nothing general does.
std::string_view advice_for(int system_errno) noexcept;

// `what` continues the sentence "CALL WHAT: ...": "of 4096 bytes on mlx5_0". `advice` replaces the general one.
Error verbs_error(std::string_view call, std::string_view what, int system_errno, std::string_view advice = {});

// The same, ready to return.
tl::unexpected<Error> verbs_failure(std::string_view call, std::string_view what, int system_errno,
                                    std::string_view advice = {});

// The errno in what a verbs call returned: positive by the rule, -1 with errno or negative where a provider breaks it.
int errno_of(long returned) noexcept;

// What to do about the limit on open files of this process, with its number.
std::string files_in_words();
// The same of these limits: the soft one is to be raised, or, where it is as high as the hard one, that.
std::string files_in_words(std::uint64_t soft, std::uint64_t hard);

// The limit on locked memory of this process, in words.
std::string memlock_in_words();

}  // namespace verbena::rdma
