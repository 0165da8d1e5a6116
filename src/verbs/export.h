// What leaves the shared library: a definition marked so is seen by programs, at the version that verbs.map gives it.
#pragma once

#define VERBENA_EXPORT extern "C" __attribute__((visibility("default")))
