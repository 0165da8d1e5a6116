// Attributes that stood beside an error ("gid_index=3 dgid=fe80::1 is_global=0"): which of them is wrong? What they say
// by themselves is judged from them alone; what needs a device (is that place of the table filled? of which family?)
// from the facts about one, where there is one. Pure.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "rdma/doctor_facts.h"
#include "verbena/result.h"

namespace verbena::rdma {

// By name, as canonical_attribute() spells it, and value as it was written.
using Attributes = std::map<std::string, std::string>;

enum class AttributeVerdict { kFits, kWrong, kSuspicious, kUnknown };

struct AttributeFinding {
  std::string attribute;
  AttributeVerdict verdict = AttributeVerdict::kUnknown;
  std::string text;
};

// "sgid_index" -> "gid_index", "port_num" -> "port", "grh.hop_limit" -> "hop_limit". Empty for a name that is not
// known.
std::string canonical_attribute(std::string_view name);
// All of them, for the message that refuses another.
std::vector<std::string> known_attributes();

// Reads "name=value" words.
// Errors: kInvalidArgument for a word without '=', an unknown name (lists those known), or a value that is no such.
Result<Attributes> parse_attributes(const std::vector<std::string>& words);

// What is wrong, or looks so; attributes that fit are told, too. `device` may be null.
std::vector<AttributeFinding> check_attributes(const Attributes& attributes, const DeviceFacts* device);

}  // namespace verbena::rdma
