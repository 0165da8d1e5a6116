// Reads `name version` lines and prints for each the file that a look-up finds it in, or "none".
//   which_library needed            in the global scope, as a program's own references are resolved
//   which_library dlopen LIBRARY    through a handle, as programs do that load verbs at run time
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int count, char** arguments) {
  void* handle = RTLD_DEFAULT;
  if (count == 3 && strcmp(arguments[1], "dlopen") == 0) {
    handle = dlopen(arguments[2], RTLD_NOW);
    if (handle == NULL) {
      fprintf(stderr, "%s\n", dlerror());
      return 1;
    }
  }
  char name[128], version[64];
  while (scanf("%127s %63s", name, version) == 2) {
    void* const address = dlvsym(handle, name, version);
    Dl_info info;
    char resolved[4096];
    const char* file = "none";
    if (address != NULL && dladdr(address, &info) != 0 && realpath(info.dli_fname, resolved) != NULL) file = resolved;
    printf("%s %s %s\n", name, version, file);
  }
  return 0;
}
