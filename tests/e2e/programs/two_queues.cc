// Sleeps on one completion channel that a send queue and a receive queue share, with many queue pairs and traffic both
// ways. Shows whether a completion ever comes without the event that was asked for.
//
//     two_queues [--gid-index I] [--pairs Q] [--window W] [--count N]
//
// Prints `ready GID QPN...`; reads `peer GID QPN...`, then starts. Each queue pair sends W datagrams to its partner,
// and one more for each that it receives, up to N. Prints `done WAKEUPS` when each has received N. Exit status 3 where
// a completion lay in a queue and the channel was silent; 4 where nothing came at all.
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <infiniband/verbs.h>
#include <poll.h>

#include "ud_endpoint.h"

namespace {

using e2e::die;

constexpr int kSilence_ms = 5000;
constexpr std::size_t kBytes = 64;
constexpr std::size_t kStride = e2e::kGrhBytes + kBytes;

struct Options {
  int gid_index = 0;
  std::uint32_t pairs = 16;
  std::uint32_t window = 8;
  std::uint64_t count = 2000;
};

struct Pair {
  ibv_qp* qp = nullptr;
  std::uint32_t partner = 0;
  std::uint64_t sent = 0;
  std::uint64_t received = 0;
};

class Sleeper {
 public:
  explicit Sleeper(const Options& options);
  ~Sleeper();
  Sleeper(const Sleeper&) = delete;
  Sleeper& operator=(const Sleeper&) = delete;

  void print_ready() const;
  void meet(const std::string& line);
  void run();

 private:
  void make_pair(Pair& pair);
  void post_receive(std::uint32_t number);
  void post_send(std::uint32_t number);
  void take(const ibv_wc& completion);
  bool drain(ibv_cq* cq);  // whether there was anything
  bool done() const;
  void wait();

  const Options options_;
  std::vector<std::uint8_t> memory_;
  ibv_context* context_ = nullptr;
  ibv_pd* pd_ = nullptr;
  ibv_mr* mr_ = nullptr;
  ibv_comp_channel* channel_ = nullptr;
  ibv_cq* send_cq_ = nullptr;
  ibv_cq* receive_cq_ = nullptr;
  ibv_ah* ah_ = nullptr;
  std::vector<Pair> pairs_;
  std::uint64_t wakeups_ = 0;
};

Sleeper::Sleeper(const Options& options) : options_(options), memory_(kStride * 2), pairs_(options.pairs) {
  context_ = e2e::open_first_device();
  pd_ = ibv_alloc_pd(context_);
  mr_ = ibv_reg_mr(pd_, memory_.data(), memory_.size(), IBV_ACCESS_LOCAL_WRITE);
  channel_ = ibv_create_comp_channel(context_);
  const auto depth = static_cast<int>(options_.pairs * options_.window * 4);
  send_cq_ = ibv_create_cq(context_, depth, nullptr, channel_, 0);
  receive_cq_ = ibv_create_cq(context_, depth, nullptr, channel_, 0);
  if (mr_ == nullptr || send_cq_ == nullptr || receive_cq_ == nullptr) die("verbs objects");
  for (Pair& pair : pairs_) make_pair(pair);
}

Sleeper::~Sleeper() {
  for (const Pair& pair : pairs_) ibv_destroy_qp(pair.qp);
  if (ah_ != nullptr) ibv_destroy_ah(ah_);
  ibv_destroy_cq(send_cq_);
  ibv_destroy_cq(receive_cq_);
  ibv_destroy_comp_channel(channel_);
  ibv_dereg_mr(mr_);
  ibv_dealloc_pd(pd_);
  ibv_close_device(context_);
}

void Sleeper::make_pair(Pair& pair) {
  ibv_qp_init_attr init{};
  init.send_cq = send_cq_;
  init.recv_cq = receive_cq_;
  init.cap = {.max_send_wr = options_.window * 2,
              .max_recv_wr = options_.window * 2,
              .max_send_sge = 1,
              .max_recv_sge = 1,
              .max_inline_data = 0};
  init.qp_type = IBV_QPT_UD;
  init.sq_sig_all = 1;
  pair.qp = ibv_create_qp(pd_, &init);
  if (pair.qp == nullptr) die("ibv_create_qp");
  e2e::to_ready_to_send(pair.qp);
  const auto number = static_cast<std::uint32_t>(&pair - pairs_.data());
  for (std::uint32_t i = 0; i < options_.window * 2; ++i) post_receive(number);
}

void Sleeper::print_ready() const {
  std::cout << "ready " << e2e::gid_text(context_, options_.gid_index);
  for (const Pair& pair : pairs_) std::cout << ' ' << pair.qp->qp_num;
  std::cout << std::endl;
}

void Sleeper::meet(const std::string& line) {
  std::istringstream words(line);
  std::string word;
  std::string gid;
  words >> word >> gid;
  if (word != "peer") die("not a peer: " + line);
  ah_ = e2e::make_address_handle(pd_, options_.gid_index, gid);
  for (Pair& pair : pairs_) {
    if (!(words >> pair.partner)) die("too few queue pairs: " + line);
  }
}

void Sleeper::post_receive(std::uint32_t number) {
  ibv_sge piece{reinterpret_cast<std::uintptr_t>(memory_.data()), kStride, mr_->lkey};
  ibv_recv_wr request{};
  request.wr_id = number;
  request.sg_list = &piece;
  request.num_sge = 1;
  ibv_recv_wr* bad = nullptr;
  errno = ibv_post_recv(pairs_[number].qp, &request, &bad);
  if (errno != 0) die("ibv_post_recv");
}

void Sleeper::post_send(std::uint32_t number) {
  Pair& pair = pairs_[number];
  ibv_sge piece{reinterpret_cast<std::uintptr_t>(memory_.data() + kStride), kBytes, mr_->lkey};
  ibv_send_wr request{};
  request.wr_id = number;
  request.sg_list = &piece;
  request.num_sge = 1;
  request.opcode = IBV_WR_SEND;
  request.wr.ud.ah = ah_;
  request.wr.ud.remote_qpn = pair.partner;
  request.wr.ud.remote_qkey = e2e::kQkey;
  ibv_send_wr* bad = nullptr;
  // A send that has completed keeps its place until that is polled.
  while ((errno = ibv_post_send(pair.qp, &request, &bad)) == ENOMEM) drain(send_cq_);
  if (errno != 0) die("ibv_post_send");
  ++pair.sent;
}

void Sleeper::take(const ibv_wc& completion) {
  if (completion.status != IBV_WC_SUCCESS) die(std::string("a completion: ") + ibv_wc_status_str(completion.status));
  if (completion.opcode != IBV_WC_RECV) return;
  const auto number = static_cast<std::uint32_t>(completion.wr_id);
  Pair& pair = pairs_[number];
  ++pair.received;
  post_receive(number);
  if (pair.sent < options_.count) post_send(number);
}

bool Sleeper::drain(ibv_cq* cq) {
  std::array<ibv_wc, 8> completions{};
  bool any = false;
  for (int got = 0; (got = ibv_poll_cq(cq, static_cast<int>(completions.size()), completions.data())) != 0;) {
    if (got < 0) die("ibv_poll_cq");
    any = true;
    for (int i = 0; i < got; ++i) take(completions[static_cast<std::size_t>(i)]);
  }
  return any;
}

bool Sleeper::done() const {
  for (const Pair& pair : pairs_) {
    if (pair.received < options_.count) return false;
  }
  return true;
}

// One event, and what it stands for: acknowledged, asked for again, then all that is there is taken.
void Sleeper::wait() {
  pollfd entry{.fd = channel_->fd, .events = POLLIN, .revents = 0};
  if (poll(&entry, 1, kSilence_ms) == 0) {
    const bool sends = drain(send_cq_);
    const bool receives = drain(receive_cq_);
    std::fprintf(stderr, "silent for %d ms; in the send queue: %s; in the receive queue: %s\n", kSilence_ms,
                 sends ? "completions" : "nothing", receives ? "completions" : "nothing");
    std::exit(sends || receives ? 3 : 4);
  }
  ibv_cq* cq = nullptr;
  void* cq_context = nullptr;
  if (ibv_get_cq_event(channel_, &cq, &cq_context) != 0) die("ibv_get_cq_event");
  ++wakeups_;
  ibv_ack_cq_events(cq, 1);
  if (ibv_req_notify_cq(cq, 0) != 0) die("ibv_req_notify_cq");
  drain(cq);
}

void Sleeper::run() {
  if (ibv_req_notify_cq(send_cq_, 0) != 0 || ibv_req_notify_cq(receive_cq_, 0) != 0) die("ibv_req_notify_cq");
  for (std::uint32_t number = 0; number < options_.pairs; ++number) {
    for (std::uint32_t i = 0; i < options_.window; ++i) post_send(number);
  }
  while (!done()) wait();
  std::cout << "done " << wakeups_ << std::endl;
}

Options parse(int count, char** arguments) {
  Options options;
  for (int i = 1; i + 1 < count; i += 2) {
    const std::string_view name = arguments[i];
    const auto value = std::strtoull(arguments[i + 1], nullptr, 10);
    if (name == "--gid-index") {
      options.gid_index = static_cast<int>(value);
    } else if (name == "--pairs") {
      options.pairs = static_cast<std::uint32_t>(value);
    } else if (name == "--window") {
      options.window = static_cast<std::uint32_t>(value);
    } else if (name == "--count") {
      options.count = value;
    } else {
      die("unknown option");
    }
  }
  return options;
}

}  // namespace

int main(int count, char** arguments) {
  Sleeper sleeper(parse(count, arguments));
  sleeper.print_ready();
  std::string line;
  if (!std::getline(std::cin, line)) return 0;
  sleeper.meet(line);
  sleeper.run();
  std::getline(std::cin, line);  // until told that the other one is done too
  return 0;
}
