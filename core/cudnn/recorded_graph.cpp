#include "core/cudnn/recorded_graph.h"

#include <cstdio>
#include <string>
#include <utility>

#include "core/error.h"

namespace duplex::cudnn {
namespace {

/// The context's stream captures as long as this lives, or until end().
class Capture {
 public:
  explicit Capture(Context& context) : capturing_(context), stream_(context.stream()) {
    // The loader's thread and the copies' streams go on as they would without.
    check(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), "recording");
    open_ = true;
  }
  ~Capture() {
    cudaGraph_t graph = nullptr;
    if (open_) cudaStreamEndCapture(stream_, &graph);
    if (graph != nullptr) cudaGraphDestroy(graph);
  }
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  Handle<cudaGraph_t> end() {
    open_ = false;
    cudaGraph_t graph = nullptr;
    check(cudaStreamEndCapture(stream_, &graph), "recording");
    return Handle<cudaGraph_t>(graph);
  }

 private:
  const Capturing capturing_;
  cudaStream_t stream_;
  bool open_ = false;
};

Handle<cudaGraphExec_t> made_ready(cudaGraph_t graph) {
  cudaGraphExec_t ready = nullptr;
#if CUDART_VERSION >= 12000
  check(cudaGraphInstantiate(&ready, graph, 0), "making a graph ready");
#else
  check(cudaGraphInstantiate(&ready, graph, nullptr, nullptr, 0), "making a graph ready");
#endif
  return Handle<cudaGraphExec_t>(ready);
}

class RecordedGraph final : public Recording {
 public:
  RecordedGraph(ContextPtr context, Handle<cudaGraphExec_t> graph)
      : context_(std::move(context)), graph_(std::move(graph)), moves_(context_->moves()) {}

  bool outdated() const override { return context_->moves() != moves_; }
  void run() override {
    context_->enter();
    check(cudaGraphLaunch(graph_.get(), context_->stream()), "running recorded operations");
  }

 private:
  ContextPtr context_;
  Handle<cudaGraphExec_t> graph_;
  std::uint64_t moves_;
};

}  // namespace

std::unique_ptr<Recording> record(const ContextPtr& context, const std::function<void()>& work) {
  context->enter();
  try {
    Capture capture(*context);
    work();
    return std::make_unique<RecordedGraph>(context, made_ready(capture.end().get()));
  } catch (const Error& error) {
    cudaGetLastError();  // Else the next call would report it.
    std::fprintf(stderr, "%s; operations are asked for one by one, without a CUDA graph\n",
                 error.what());
    return nullptr;
  }
}

}  // namespace duplex::cudnn
