// What the user may set for the software RNIC, by environment variable: the only way in for a program that knows
// nothing of Verbena. One row each; the parser, `verbena run` and docs/settings.md follow this table.
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/setting.h"
#include "device/device_declaration.h"
#include "device/injection.h"
#include "device/lid_map.h"
#include "device/limits.h"
#include "device/quirks.h"
#include "transport/impair/impair_spec.h"
#include "verbena/result.h"

namespace verbena::device {

inline constexpr std::array kSettingRows{
    SettingRow{
        "VERBENA_DEVICES", "IFACE[/KEY=VALUE...][+IFACE...][,...]",
        "every usable interface, that of the default route first",
        "Interfaces that become verbena0, verbena1, ... in this order. Without one that is up and has an address, "
        "`lo` is taken. eth0+eth1 is one device with two ports. IFACE/link_layer=infiniband declares an InfiniBand "
        "port; further keys: lid=1, lmc=0, sm_lid=1, "
        "sm_sl=0, guid, subnet_prefix=fe80::, pkeys=0xffff+0x8001."},
    SettingRow{"VERBENA_LIDS", "LID[-LID]@ADDRESS[,...]", "none",
               "Which LIDs of InfiniBand ports are on which other host. All others are on this host."},
    SettingRow{
        "VERBENA_SUBNET", "FILE", "none",
        "What a subnet manager would tell the InfiniBand ports, in lines: `lid 8@10.0.0.2`, `port verbena0 lid=4 "
        "sm_lid=3`. The file is watched; what changes in it raises LID, SM, P_Key and GID change events."},
    SettingRow{
        "VERBENA_SHM", "on|off", "on",
        "Whether processes of one user on one host exchange packets through shared memory. Off sends them through "
        "UDP; misdirected packets are still handed over by shared memory."},
    SettingRow{
        "VERBENA_UDP", "on|off", "on",
        "Whether UDP port 4791 is opened. Off keeps traffic on this host, without a warning where the port is taken."},
    SettingRow{"VERBENA_IMPAIR", "KEY=VALUE[,...]", "none",
               "Faults for every packet sent, drawn from the seed: loss=5%, dup=5%, reorder=5%, corrupt=1%, mark=1%, "
               "delay=1ms, jitter=200us, seed=7. mark: ECN-capable packets are marked as from a congested network."},
    SettingRow{
        "VERBENA_LIMITS", "KEY=VALUE[,...]", "none",
        "Limits of the devices, lower than they are, to rehearse running into them: max_ah=64, max_qp, max_qp_wr, "
        "max_cq, max_cqe, max_mr, max_mw, max_pd, max_sge, max_inline, max_srq, max_srq_wr, max_srq_sge, max_xrcd."},
    SettingRow{"VERBENA_INJECT", "KEY=VALUE[,...]", "none",
               "Calls that are slow or fail, drawn from the seed: create_ah.delay=1ms..3s, create_ah.fail=ENOMEM with "
               "create_ah.after=100, create_ah.times=10, create_ah.chance=5%; the same for alloc_pd, reg_mr, alloc_mw, "
               "alloc_dm, "
               "create_cq, "
               "open_xrcd, create_srq and create_qp; events.lose=50%; seed=7."},
    SettingRow{"VERBENA_QUIRKS", "NAME[,NAME...]", "none",
               "Behaviour of other devices that programs meet in the field. "
               "memlock: registering memory counts against `ulimit -l` of the process, unless it has CAP_IPC_LOCK; "
               "grh_checksum_zero: the IPv4 header of a received datagram has the checksum 0; "
               "grh_dirty: the first 20 bytes of the 40 in front of a datagram over IPv4 stay as they were; "
               "wc_sl_unfilled: `wc.sl` of a received datagram is 0 and does not tell IPv4 from IPv6; "
               "hop_limit_override: every address handle has the hop limit 64, whatever it was made with, and its "
               "attributes say so; "
               "rnr_nak_lost: a connection's message that finds no receive is answered with nothing: the sender's "
               "timeout and retry_cnt decide, not rnr_retry."},
    SettingRow{
        "VERBENA_CONGESTION", "on|off", "on",
        "Whether connections mind congestion: their packets are sent ECN-capable (ECT(0), in place of the two lowest "
        "bits of the traffic class), marked ones are answered with CNPs, and CNPs slow a connection down (DCQCN)."},
    SettingRow{
        "VERBENA_SELECTIVE_REPEAT", "on|off", "on",
        "Whether reliable connections repeat selectively where the other end is of Verbena and does so, too: only "
        "what was lost is sent again. Off, and towards others, they go back to what was lost and send on from "
        "there."},
    SettingRow{"VERBENA_STRICT", "on|off", "off",
               "Whether misuse is looked for that a device need not see: an address handle that is destroyed while a "
               "posted send names it is counted and named in the log."},
    SettingRow{"VERBENA_PCAP", "FILE", "none",
               "Packets sent and received are appended to this pcapng file; several processes may share it."},
    SettingRow{
        "VERBENA_LOG", "off|error|warn|info|debug", "warn",
        "How much is written to standard error. warn: also why an address is refused, each reason once; info: why any "
        "call is."},
};

struct Settings {
  std::vector<DeviceDeclaration> devices;  // empty: choose
  LidMap lids;
  std::string subnet_file;
  bool shared_memory = true;
  bool udp = true;
  bool strict = false;
  bool congestion_control = true;
  bool selective_repeat = true;
  transport::ImpairSpec impairment;
  engine::Limits limits = standard_limits();
  InjectionSpec injection;
  Quirks quirks;
  std::string pcap;
  std::string log_level = "warn";
};

// Reads each row with `lookup` (in production: getenv). An unset or empty variable means its default.
Result<Settings> parse_settings(const std::function<std::optional<std::string>(std::string_view)>& lookup);

}  // namespace verbena::device
