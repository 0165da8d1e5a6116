// A file descriptor that is closed with its owner.
#pragma once

#include "rdma/descriptor.h"

namespace verbena::cli {

using rdma::Descriptor;

}  // namespace verbena::cli
