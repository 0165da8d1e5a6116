// What an address costs on a verbs device, side by side in one run: ibv_create_ah with ibv_destroy_ah beside a hit in
// the directory and beside what applications write themselves, on one thread and on two; and the rate of datagrams
// through one fixed handle, through an array of handles, through the directory, and with a handle made for each send.
//
//     ah_on_device --device rxe0 --peer-device rxe1 --to 10.9.0.2 [--table]     JSON, or a table
//
// The destinations are one address with as many flow labels, each an address handle of its own. Rounds are short and
// interleaved; each figure is the median of its rounds. A datagram counts when it was received.
#include <cstdio>
#include <string>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "device_addresses.h"

namespace verbena::bench {
namespace {

const RateFigure& rate_of(const AddressFigures& figures, const std::string& name) {
  for (const RateFigure& rate : figures.rates) {
    if (rate.name == name) return rate;
  }
  return figures.rates.front();
}

nlohmann::json to_json(const AddressFigures& figures, const AddressPlan& plan) {
  nlohmann::json per_second;
  auto to_fixed = nlohmann::json::object();
  for (const RateFigure& rate : figures.rates) {
    per_second[rate.name] = rate.per_second;
    to_fixed[rate.name] = {{"median", rate.fixed_handle_times},
                           {"quartiles", {rate.fixed_handle_lowest, rate.fixed_handle_highest}},
                           {"processor_ns", rate.processor_ns},
                           {"processor_median", rate.fixed_handle_processor}};
  }
  auto hits = nlohmann::json::array();
  const HitFigure& hit = figures.hits.front();
  for (const HitFigure& way : figures.hits) {
    hits.push_back({{"way", way.name},
                    {"one_thread_ns", way.one_thread_ns},
                    {"undisturbed_rounds", way.undisturbed},
                    {"over_directory_one_thread", way.one_thread_ns / hit.one_thread_ns}});
    if (way.undisturbed == 0) continue;
    hits.back()["two_threads_ns"] = way.two_threads_ns;
    hits.back()["two_threads_times"] = way.two_threads_times;
    if (hit.undisturbed != 0) hits.back()["over_directory_two_threads"] = way.two_threads_ns / hit.two_threads_ns;
  }
  const RateFigure& directory = rate_of(figures, "directory");
  return {{"device", figures.device},
          {"peer_device", figures.peer_device},
          {"destinations", plan.destinations},
          {"rounds", plan.rounds},
          {"create_destroy_ns", figures.create_destroy_ns},
          {"directory_hit_ns", hit.one_thread_ns},
          {"hits", std::move(hits)},
          {"datagrams_per_second", std::move(per_second)},
          {"over_fixed_handle", std::move(to_fixed)},
          {"lost", figures.lost},
          {"ratios",
           {{"create_over_hit", figures.create_destroy_ns / hit.one_thread_ns},
            {"directory_over_fixed_handle", directory.fixed_handle_times},
            {"directory_over_create_per_send", directory.create_per_send_times}}}};
}

void print_table(const AddressFigures& figures, const AddressPlan& plan) {
  const HitFigure& hit = figures.hits.front();
  fmt::print("{} -> {}, {} destinations, medians of {} rounds\n\n", figures.device, figures.peer_device,
             plan.destinations, plan.rounds);
  fmt::print("{:<36} {:>9} {:>9} {:>11} {:>9} {:>9}\n", "to find an address, processor time", "1 thread", "2 threads",
             "2 make of 1", "x hit, 1", "x hit, 2");
  for (const HitFigure& way : figures.hits) {
    fmt::print("{:<36} {:>6.1f} ns {:>6.1f} ns {:>9.2f} x {:>7.2f} x {:>7.2f} x\n", way.name, way.one_thread_ns,
               way.two_threads_ns, way.two_threads_times, way.one_thread_ns / hit.one_thread_ns,
               hit.undisturbed == 0 ? 0 : way.two_threads_ns / hit.two_threads_ns);
  }
  fmt::print("{:<36} {:>6.1f} ns {:>32} {:>7.2f} x\n", "ibv_create_ah and ibv_destroy_ah", figures.create_destroy_ns,
             "", figures.create_destroy_ns / hit.one_thread_ns);
  for (const HitFigure& way : figures.hits) {
    if (way.undisturbed < plan.rounds) {
      fmt::print("  {}: the two threads had their processors in {} of {} rounds; the others do not count\n", way.name,
                 way.undisturbed, plan.rounds);
    }
  }
  fmt::print("\n{:<36} {:>9}  {:>18} {:>17} {:>12}\n", "datagrams of 64 bytes, received", "M/s", "of fixed handle's",
             "quartiles", "x per send");
  for (const RateFigure& rate : figures.rates) {
    fmt::print("{:<36} {:>9.2f}  {:>16.1f} % {:>7.1f} .. {:>4.1f} % {:>10.2f} x\n", rate.name, rate.per_second / 1e6,
               rate.fixed_handle_times * 100, rate.fixed_handle_lowest * 100, rate.fixed_handle_highest * 100,
               rate.create_per_send_times);
  }
  fmt::print("\n{:<36} {:>12} {:>18} {:>12}\n", "processor time of the process", "a datagram", "of fixed handle's rate",
             "x per send");
  for (const RateFigure& rate : figures.rates) {
    fmt::print("{:<36} {:>9.0f} ns {:>20.1f} % {:>10.2f} x\n", rate.name, rate.processor_ns,
               rate.fixed_handle_processor * 100, rate.create_per_send_processor);
  }
  if (figures.lost != 0) fmt::print("{} datagrams were lost\n", figures.lost);
}

}  // namespace
}  // namespace verbena::bench

int main(int argc, char** argv) {
  using namespace verbena::bench;
  AddressPlan plan;
  bool smoke = false;
  bool table = false;
  CLI::App app("What an address costs on a verbs device, as JSON or as a table");
  app.add_option("--device", plan.device, "The device that sends")->required();
  app.add_option("--peer-device", plan.peer_device, "The device that receives; by default the same");
  app.add_option("--to", plan.to, "An address of the receiving device")->required();
  app.add_option("--destinations", plan.destinations, "How many")->check(CLI::Range(1, 16384))->capture_default_str();
  app.add_option("--datagrams", plan.datagrams, "In each round")->check(CLI::PositiveNumber)->capture_default_str();
  app.add_option("--look-ups", plan.look_ups, "In each round")->check(CLI::PositiveNumber)->capture_default_str();
  app.add_option("--rounds", plan.rounds, "Of each way")->check(CLI::PositiveNumber)->capture_default_str();
  app.add_flag("--table", table, "A table, not JSON");
  app.add_flag("--smoke", smoke, "Briefly, to see that it works");
  CLI11_PARSE(app, argc, argv);
  if (plan.peer_device.empty()) plan.peer_device = plan.device;
  if (smoke) {
    plan.rounds = 1;
    plan.datagrams = plan.destinations = plan.creations = plan.look_ups = 100;
  }
  const auto figures = DeviceAddresses(plan).measure();
  if (!figures) {
    std::fprintf(stderr, "ah_on_device: %s\n", figures.error().message.c_str());
    return 1;
  }
  if (table) {
    print_table(*figures, plan);
  } else {
    std::puts(to_json(*figures, plan).dump(2).c_str());
  }
  return 0;
}
