// One UD queue pair on the first verbs device, as a small program needs it. Plain verbs: nothing of Verbena is known
// here, so that what runs is what any application would run.
//
// Errors: whatever fails says so on stderr and ends the program with status 1.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <infiniband/verbs.h>

namespace e2e {

inline constexpr std::size_t kGrhBytes = 40;
inline constexpr std::uint32_t kQkey = 0x11223344;

struct EndpointOptions {
  std::uint8_t port = 1;
  int gid_index = 0;
  std::uint32_t receives = 2048;
  std::uint32_t sends = 128;
  std::size_t message_bytes = 256;
};

// Of a program that has more than an endpoint.
ibv_context* open_first_device();
void to_ready_to_send(ibv_qp* qp, std::uint8_t port = 1);
std::string gid_text(ibv_context* context, int gid_index, std::uint8_t port = 1);
ibv_ah* make_address_handle(ibv_pd* pd, int gid_index, const std::string& gid, std::uint8_t port = 1);

class UdEndpoint {
 public:
  explicit UdEndpoint(const EndpointOptions& options);
  ~UdEndpoint();
  UdEndpoint(const UdEndpoint&) = delete;
  UdEndpoint& operator=(const UdEndpoint&) = delete;

  ibv_context* context() const { return context_; }
  ibv_pd* pd() const { return pd_; }
  ibv_cq* cq() const { return cq_; }
  ibv_qp* qp() const { return qp_; }
  std::uint32_t qpn() const { return qp_->qp_num; }
  std::string gid_text() const { return e2e::gid_text(context_, options_.gid_index, options_.port); }

  // Requires: destroyed with ibv_destroy_ah() before this.
  ibv_ah* make_address_handle(const std::string& gid) const {
    return e2e::make_address_handle(pd_, options_.gid_index, gid, options_.port);
  }

  std::uint8_t* send_slot(std::uint32_t index) {
    return memory_.data() + send_offset_ + index * options_.message_bytes;
  }
  // What follows the 40 bytes of GRH.
  const std::uint8_t* received(std::uint64_t slot) const { return memory_.data() + slot * stride_ + kGrhBytes; }

  // What ibv_post_send() returned. The completion's wr_id is kSendMark | index.
  int post_send(std::uint32_t index, std::size_t bytes, ibv_ah* handle, std::uint32_t qpn);
  void post_receive(std::uint64_t slot);

  static constexpr std::uint64_t kSendMark = std::uint64_t{1} << 63;

 private:
  void make_queue_pair();

  EndpointOptions options_;
  std::size_t stride_;
  std::size_t send_offset_;
  std::vector<std::uint8_t> memory_;
  ibv_context* context_ = nullptr;
  ibv_pd* pd_ = nullptr;
  ibv_mr* mr_ = nullptr;
  ibv_cq* cq_ = nullptr;
  ibv_qp* qp_ = nullptr;
};

// Writes `what` and the words of errno to stderr, and ends the program with status 1.
[[noreturn]] void die(const std::string& what);

}  // namespace e2e
