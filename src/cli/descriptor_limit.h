// What is not there for want of a descriptor is not known to be missing: where this process, or the host, can open no
// more files, the tool says so instead of an empty answer.
#pragma once

#include <string_view>

#include "verbena/device.h"
#include "verbena/result.h"

namespace verbena::cli {

// Of an errno.
bool is_descriptor_shortage(int number) noexcept;

// kExhausted: "WHAT: Too many open files", which limit that is, and what to do. Requires: is_descriptor_shortage().
Error descriptor_shortage(std::string_view what, int number);

// As DeviceList::read(); kExhausted where the list is empty and there are too few descriptors to read one.
Result<DeviceList> read_device_list();

}  // namespace verbena::cli
