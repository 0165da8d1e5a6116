#include "cli/port_option.h"

namespace verbena::cli {

void add_port_option(CLI::App& subcommand, PortName& port, const std::string& description) {
  const auto check = [](std::string& text) {
    const auto name = parse_port_name(text);
    return name ? std::string() : name.error().message;
  };
  const auto take = [&port](const std::string& text) {
    if (const auto name = parse_port_name(text)) port = *name;
  };
  subcommand.add_option_function<std::string>("--device", take, description)
      ->check(CLI::Validator(check, "", "port of a device"))
      ->type_name("NAME[/PORT]");
}

}  // namespace verbena::cli
