# How the whole tree is compiled: warnings, sanitizers, coverage, fuzzing, the compiler cache.
set(VERBENA_SANITIZE "" CACHE STRING "Sanitizers, comma separated, as -fsanitize= takes them")
option(VERBENA_COVERAGE "Instrument for gcov" OFF)
option(VERBENA_FUZZ "Build the fuzz targets (needs clang)" OFF)

find_program(VERBENA_CCACHE ccache)
if(VERBENA_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${VERBENA_CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${VERBENA_CCACHE})
endif()

add_compile_options(-Wall -Wextra -Wpedantic -Werror
  $<$<COMPILE_LANGUAGE:CXX>:-Wconversion> $<$<COMPILE_LANGUAGE:CXX>:-Wshadow>
  $<$<COMPILE_LANGUAGE:CXX>:-Wold-style-cast> $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor>)
# g++ 12 sees overlaps and wrong frees in std::string and std::vector that are not there (GCC bugs 105651 and 109717).
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_compile_options(-Wno-restrict -Wno-free-nonheap-object)
endif()
set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O2 -g")
set(CMAKE_CXX_FLAGS_DEBUG "-Og -g")

if(VERBENA_SANITIZE)
  add_compile_options(-fsanitize=${VERBENA_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${VERBENA_SANITIZE})
endif()
if(VERBENA_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()
if(VERBENA_COVERAGE)
  add_compile_options(--coverage)
  add_link_options(--coverage)
endif()
