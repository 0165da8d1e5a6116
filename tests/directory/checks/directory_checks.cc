// The middleware between two devices of this host, looked at from within: limits, storms, tenants, attributes, replies.
//
//     directory_checks --near DEVICE --far DEVICE --v4 ADDRESS --v6 ADDRESS --away ADDRESS [--rounds N] [CHECK...]
//     directory_checks --list
//
// --v4 and --v6: of the far device. --away: the first address of an IPv4 network of 65,536 behind it, where nobody
// listens. Prints a line for each check, `check NAME {"ok": ..., "wrong": [...], "seen": {...}, "ms": ...}`, and ends
// with 1 where one was not as it should be.
#include <algorithm>
#include <chrono>
#include <exception>
#include <iostream>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "checks.h"
#include "ledger.h"

namespace verbena::on_device {
namespace {

struct Names {
  std::string near;
  std::string far;
};

std::vector<Check> all_checks() {
  std::vector<Check> all;
  for (const auto& some : {pressure_checks(), tenant_checks(), address_checks()}) {
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

bool make(const Check& check, const World& world) {
  Findings findings;
  const auto begin = std::chrono::steady_clock::now();
  try {
    check.make(world, findings);
  } catch (const std::exception& broken) {
    findings.expect(false, broken.what());
  }
  findings.expect_equal<std::size_t>(Ledger::of_this_process().alive(), 0, "address handles left on the devices");
  nlohmann::json report = findings.report();
  report["ms"] = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
  std::cout << "check " << check.name << " " << report << std::endl;
  return report["ok"];
}

int run(const Names& names, World& world, const std::vector<std::string>& wanted) {
  world.near = must(Context::open(names.near), "the near device");
  world.far = must(Context::open(names.far), "the far device");
  bool good = true;
  for (const Check& check : all_checks()) {
    if (!wanted.empty() && std::find(wanted.begin(), wanted.end(), check.name) == wanted.end()) continue;
    good = make(check, world) && good;
  }
  must(world.near.close(), "closing the near device");
  must(world.far.close(), "closing the far device");
  return good ? 0 : 1;
}

int list() {
  for (const Check& check : all_checks()) std::cout << check.name << "\n";
  return 0;
}

}  // namespace
}  // namespace verbena::on_device

int main(int argc, char** argv) {
  verbena::on_device::Names names;
  verbena::on_device::World world;
  std::vector<std::string> wanted;
  bool only_list = false;
  CLI::App app("The middleware between two devices of this host, looked at from within");
  app.add_option("--near", names.near, "The device to send from");
  app.add_option("--far", names.far, "The device to send to");
  app.add_option("--v4", world.v4, "An IPv4 address of the far device");
  app.add_option("--v6", world.v6, "An IPv6 address of the far device");
  app.add_option("--away", world.away, "The first address of a network behind it, where nobody listens");
  app.add_option("--rounds", world.rounds, "How often each of a thousand peers has its turn")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_flag("--list", only_list, "The names of the checks, and nothing else");
  app.add_option("check", wanted, "Only these");
  CLI11_PARSE(app, argc, argv);
  if (only_list) return verbena::on_device::list();
  try {
    return verbena::on_device::run(names, world, wanted);
  } catch (const std::exception& broken) {
    std::cerr << "directory_checks: " << broken.what() << "\n";
    return 1;
  }
}
