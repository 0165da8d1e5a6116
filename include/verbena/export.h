// What the shared library lets out: everything else in it is hidden.
#pragma once

#define VERBENA_API __attribute__((visibility("default")))
