#include "end.h"

#include <thread>
#include <utility>

namespace verbena::on_device {

using namespace std::chrono_literals;

bool within(std::chrono::nanoseconds patience, const std::function<bool()>& step) {
  const Deadline deadline = Deadline::in(patience);
  while (!step()) {
    if (deadline.passed()) return false;
    std::this_thread::sleep_for(1ms);
  }
  return true;
}

End::End(const Context& context, AhDirectoryOptions options)
    : domain(must(ProtectionDomain::create(context), "domain")),
      directory(must(AhDirectory::create(domain, 1, std::move(options)), "directory")),
      lane(must(Lane::open(context, domain, directory, accounted()), "queue pair")) {}

void End::close(Findings& findings) {
  must(lane->settle(Deadline::in(30s)), "completions at the end");
  findings.expect_equal<std::uint64_t>(lane->failed(), 0, "sends that completed with an error");
  lane.reset();
  const AhLeftover left = directory.close(Deadline::in(10s));
  findings.expect(left.empty(), "left by the directory: " + in_words(left));
  directory = {};
  must(domain.close(), "closing the domain");
}

}  // namespace verbena::on_device
