// The device's files, through the libc calls that programs use. The software RNIC stands in front of libc here as it
// does under LD_PRELOAD.
#include <cstdio>
#include <cstdlib>
#include <set>
#include <string>

#include <dirent.h>
#include <fcntl.h>
#include <net/if.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rig.h"

extern "C" {
int ibv_read_sysfs_file(const char* directory, const char* file, char* buffer, std::size_t size);
int ibv_query_gid_type(ibv_context* context, std::uint8_t port, unsigned index, int* type);
}

namespace verbena::abi {
namespace {

class Sysfs : public Rig {
 protected:
  std::string interface() const {
    char name[IF_NAMESIZE] = {};
    EXPECT_NE(nullptr, ::if_indextoname(gid_.ndev_ifindex, name));
    return name;
  }
};

const std::string kDevice = "/sys/class/infiniband/verbena0";

std::string content(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return "(cannot be opened)";
  char text[256] = {};
  const ssize_t length = ::read(fd, text, sizeof text - 1);
  ::close(fd);
  return length < 0 ? "(cannot be read)" : std::string(text, static_cast<std::size_t>(length));
}

std::set<std::string> names_in(const std::string& path) {
  std::set<std::string> names;
  DIR* const directory = ::opendir(path.c_str());
  if (directory == nullptr) return {"(cannot be opened)"};
  while (const dirent* const entry = ::readdir(directory)) names.insert(entry->d_name);
  EXPECT_EQ(0, ::closedir(directory));
  names.erase(".");
  names.erase("..");
  return names;
}

TEST_F(Sysfs, GidTypesAndInterfacesAgreeWithTheVerbs) {
  const std::string index = std::to_string(gid_.gid_index);
  EXPECT_EQ("RoCE v2\n", content(kDevice + "/ports/1/gid_attrs/types/" + index));
  EXPECT_EQ(interface() + "\n", content(kDevice + "/ports/1/gid_attrs/ndevs/" + index));
  EXPECT_EQ("4: ACTIVE\n", content(kDevice + "/ports/1/state"));
  EXPECT_EQ("Ethernet\n", content(kDevice + "/ports/1/link_layer"));
  int type = -1;
  EXPECT_EQ(0, ibv_query_gid_type(context_.get(), kPort, gid_.gid_index, &type));
  EXPECT_EQ(1, type);
}

TEST_F(Sysfs, AnEmptyIndexOpensAndFailsToRead) {
  const int fd = ::open((kDevice + "/ports/1/gid_attrs/types/250").c_str(), O_RDONLY);
  ASSERT_GE(fd, 0);
  char text[32];
  errno = 0;
  EXPECT_EQ(-1, ::read(fd, text, sizeof text));
  EXPECT_EQ(EINVAL, errno);
  ::close(fd);
  EXPECT_EQ(-1, ::open((kDevice + "/ports/1/gid_attrs/types/5000").c_str(), O_RDONLY));
  EXPECT_EQ(ENOENT, errno);
}

TEST_F(Sysfs, StreamsReadThemToo) {
  FILE* const file = std::fopen((kDevice + "/node_type").c_str(), "r");
  ASSERT_NE(nullptr, file);
  char line[32] = {};
  EXPECT_NE(nullptr, std::fgets(line, sizeof line, file));
  EXPECT_STREQ("1: CA\n", line);
  std::fclose(file);
  errno = 0;
  EXPECT_EQ(nullptr, std::fopen((kDevice + "/node_type").c_str(), "w"));
  EXPECT_EQ(EACCES, errno);
}

TEST_F(Sysfs, DirectoriesCanBeListed) {
  EXPECT_TRUE(names_in("/sys/class/infiniband").contains("verbena0"));
  EXPECT_TRUE(names_in(kDevice).contains("ports"));
  EXPECT_EQ(std::set<std::string>{"1"}, names_in(kDevice + "/ports"));
  EXPECT_TRUE(names_in(kDevice + "/device/net").contains(interface()));
  EXPECT_TRUE(names_in("/sys/class").contains("net"));  // the kernel's own go on as before
  DIR* const directory = ::opendir(kDevice.c_str());
  ASSERT_NE(nullptr, directory);
  const std::string first = ::readdir(directory)->d_name;
  ::rewinddir(directory);
  EXPECT_EQ(first, ::readdir(directory)->d_name);
  ::closedir(directory);
}

TEST_F(Sysfs, PathsCanBeAskedAbout) {
  struct stat status {};
  EXPECT_EQ(0, ::stat(kDevice.c_str(), &status));
  EXPECT_TRUE(S_ISDIR(status.st_mode));
  EXPECT_EQ(0, ::lstat(kDevice.c_str(), &status));
  EXPECT_TRUE(S_ISLNK(status.st_mode));
  EXPECT_EQ(0, ::stat((kDevice + "/ports/1/state").c_str(), &status));
  EXPECT_TRUE(S_ISREG(status.st_mode));
  EXPECT_EQ(0, ::fstatat(AT_FDCWD, (kDevice + "/ports").c_str(), &status, 0));
  EXPECT_TRUE(S_ISDIR(status.st_mode));
  struct statx extended {};
  EXPECT_EQ(0, ::statx(AT_FDCWD, (kDevice + "/ports").c_str(), 0, STATX_TYPE, &extended));
  EXPECT_TRUE(S_ISDIR(extended.stx_mode));
  EXPECT_EQ(0, ::access((kDevice + "/fw_ver").c_str(), R_OK));
  EXPECT_EQ(-1, ::access((kDevice + "/fw_ver").c_str(), W_OK));
  EXPECT_EQ(EACCES, errno);
  EXPECT_EQ(-1, ::access((kDevice + "/nothing").c_str(), F_OK));
  EXPECT_EQ(ENOENT, errno);
}

TEST_F(Sysfs, TheCharacterDeviceIsThereForThoseWhoLook) {
  const std::string path = std::string("/dev/infiniband/") + context_->device->dev_name;
  EXPECT_EQ(0, ::access(path.c_str(), R_OK | W_OK));
  struct stat status {};
  EXPECT_EQ(0, ::stat(path.c_str(), &status));
  EXPECT_TRUE(S_ISCHR(status.st_mode));
  EXPECT_EQ(-1, ::open(path.c_str(), O_RDWR));
  EXPECT_EQ(ENXIO, errno);
}

TEST_F(Sysfs, PathsResolve) {
  char* const resolved = ::realpath((kDevice + "/ports/1/").c_str(), nullptr);
  ASSERT_NE(nullptr, resolved);
  EXPECT_STREQ("/sys/devices/virtual/infiniband/verbena0/ports/1", resolved);
  EXPECT_EQ("Ethernet\n", content(std::string(resolved) + "/link_layer"));
  std::free(resolved);
  char target[128] = {};
  EXPECT_GT(::readlink(kDevice.c_str(), target, sizeof target), 0);
  EXPECT_STREQ("../../devices/virtual/infiniband/verbena0", target);
  errno = 0;
  EXPECT_EQ(nullptr, ::realpath((kDevice + "/nothing").c_str(), target));
  EXPECT_EQ(ENOENT, errno);
}

TEST_F(Sysfs, OtherPathsGoOnUntouched) {
  char name[] = "/tmp/verbena-abi-XXXXXX";
  const int made = ::mkstemp(name);
  ASSERT_GE(made, 0);
  ::close(made);
  const std::string path = name;
  EXPECT_EQ(-1, ::open(path.c_str(), O_CREAT | O_EXCL | O_RDWR, 0600));
  EXPECT_EQ(EEXIST, errno);
  ::unlink(name);
  const int fd = ::open(path.c_str(), O_CREAT | O_EXCL | O_RDWR, 0640);
  ASSERT_GE(fd, 0);
  struct stat status {};
  EXPECT_EQ(0, ::stat(path.c_str(), &status));
  EXPECT_EQ(0u, status.st_mode & 0007u);  // the mode came through
  EXPECT_EQ(0600u, status.st_mode & 0700u);
  ::close(fd);
  ::unlink(name);
  errno = 0;
  EXPECT_EQ(-1, ::open(path.c_str(), O_RDONLY));
  EXPECT_EQ(ENOENT, errno);
}

TEST_F(Sysfs, TheExportedReaderAnswersFromTheSamePlace) {
  char text[64];
  EXPECT_EQ(8, ibv_read_sysfs_file(kDevice.c_str(), "node_desc", text, sizeof text));
  EXPECT_STREQ("verbena0", text);
  EXPECT_GT(ibv_read_sysfs_file(context_->device->ibdev_path, "ports/1/gid_attrs/types/0", text, sizeof text), -2);
  EXPECT_EQ(-1, ibv_read_sysfs_file(kDevice.c_str(), "nothing", text, sizeof text));
}

}  // namespace
}  // namespace verbena::abi
