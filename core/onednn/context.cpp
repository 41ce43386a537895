#include "core/onednn/context.h"

#ifdef _OPENMP
#include <omp.h>
#endif

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

#include "core/error.h"
#include "core/mapped_memory.h"
#include "core/onednn/compat.h"
#include "core/onednn/layout.h"

namespace duplex::onednn {
namespace {

constexpr std::size_t cache_line = 64;
/// From so many bytes on, a buffer has pages of its own.
constexpr std::size_t big = std::size_t{1} << 20;

void set_threads([[maybe_unused]] int threads) {
#ifdef _OPENMP
  omp_set_num_threads(threads);
#endif
}

/// oneDNN's threads wait for each other, so there must not be fewer than it was told. OpenMP starts
/// no more than OMP_THREAD_LIMIT.
int that_may_start(int threads) {
#ifdef _OPENMP
  return std::min(threads, omp_get_thread_limit());
#else
  return threads;
#endif
}

}  // namespace

Buffer allocate_aligned(std::size_t bytes) {
  if (bytes >= big) return map_memory(bytes);
  const std::size_t lines = std::max<std::size_t>((bytes + cache_line - 1) / cache_line, 1);
  void* const data = std::aligned_alloc(cache_line, lines * cache_line);
  if (data == nullptr) throw std::bad_alloc();
  return {data, bytes, [](void* p) { std::free(p); }};
}

Context::Context(int threads) : threads_(that_may_start(threads)) {}

void Context::enter() const {
  computes_.store(std::this_thread::get_id(), std::memory_order_relaxed);
  set_threads(threads_);
}

int Context::enter_transfer() const {
  const int threads =
      std::this_thread::get_id() == computes_.load(std::memory_order_relaxed) ? threads_ : 1;
  set_threads(threads);
  return threads;
}

dnnl::primitive_attr Context::attributes() const {
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attr;
}

void Context::reserve_scratchpad(std::size_t bytes) {
  scratchpad_.bytes = std::max(scratchpad_.bytes, bytes);
}

void Context::reserve_staging(Slot slot, std::size_t bytes) {
  Reserved& staging = staging_.at(slot);
  staging.bytes = std::max(staging.bytes, bytes);
}

void* Context::taken(Reserved& reserved) {
  if (reserved.buffer.bytes() < reserved.bytes) {
    reserved.buffer = Buffer();
    reserved.buffer = allocate_aligned(reserved.bytes);
  }
  return reserved.buffer.data();
}

OperationMemory Context::operation_memory() const {
  OperationMemory memory;
  memory.kept = static_cast<std::size_t>(kept_bytes_);
  memory.shared.push_back(scratchpad_.bytes);
  for (const Reserved& staging : staging_) memory.shared.push_back(staging.bytes);
  return memory;
}

BoundPrimitive::BoundPrimitive(ContextPtr context, std::string what, dnnl::primitive primitive,
                               const dnnl::memory::desc& scratchpad, Arguments arguments)
    : context_(std::move(context)), what_(std::move(what)), primitive_(std::move(primitive)) {
  for (const auto& [id, desc] : arguments) {
    if (desc.get_size() == 0) continue;
    arguments_.emplace(id, dnnl::memory(desc, context_->engine(), DNNL_MEMORY_NONE));
  }
  if (scratchpad.get_size() == 0) return;
  context_->reserve_scratchpad(scratchpad.get_size());
  arguments_.emplace(DNNL_ARG_SCRATCHPAD,
                     dnnl::memory(scratchpad, context_->engine(), DNNL_MEMORY_NONE));
}

void BoundPrimitive::run(Pointers pointers) {
  try {
    context_->enter();
    // Setting a pointer writes zeros into a layout's padding, so this sets only a pointer that has
    // changed, or every one where the primitive does not write these zeros.
    const auto bind = [](dnnl::memory& memory, const void* pointer) {
      if (leaves_padding || memory.get_data_handle() != pointer) {
        memory.set_data_handle(const_cast<void*>(pointer));
      }
    };
    for (const auto& [id, pointer] : pointers) {
      const auto argument = arguments_.find(id);
      if (argument != arguments_.end()) bind(argument->second, pointer);
    }
    const auto scratchpad = arguments_.find(DNNL_ARG_SCRATCHPAD);
    if (scratchpad != arguments_.end()) bind(scratchpad->second, context_->scratchpad());
    primitive_.execute(context_->stream(), arguments_);
    context_->stream().wait();
  } catch (const dnnl::error& error) {
    fail(what_, error);
  }
}

BoundPrimitive make_reorder(const ContextPtr& context, const dnnl::memory::desc& from,
                            const dnnl::memory::desc& to) {
  return translate("reorder", [&] {
    context->enter();
    const dnnl::reorder::primitive_desc description(context->engine(), from, context->engine(), to,
                                                    context->attributes());
    return BoundPrimitive(context, "reorder", description, dnnl::reorder(description),
                          {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}});
  });
}

Conversion::Conversion(const ContextPtr& context, const dnnl::memory::desc& from,
                       const dnnl::memory::desc& to, Context::Slot slot)
    : context_(context), slot_(slot) {
  const dnnl::memory::desc source = with_extents_of(from, to);
  const dnnl::memory::desc target = with_extents_of(to, source);
  if (source == target) return;
  reorder_ = make_reorder(context, source, target);
  // Either end may be staged: an input's target, or an output's source.
  context->reserve_staging(slot, std::max(from.get_size(), to.get_size()));
}

const float* Conversion::input(const float* data) {
  if (!reorder_) return data;
  float* converted = context_->staging(slot_);
  reorder_.run({{DNNL_ARG_FROM, data}, {DNNL_ARG_TO, converted}});
  return converted;
}

float* Conversion::target(float* data) {
  return reorder_ ? context_->staging(slot_) : data;
}

void Conversion::finish(float* data) {
  if (!reorder_) return;
  reorder_.run({{DNNL_ARG_FROM, context_->staging(slot_)}, {DNNL_ARG_TO, data}});
}

int implementation_rank(const char* implementation) {
  const auto contains = [&](const char* word) {
    return std::strstr(implementation, word) != nullptr;
  };
  if (contains("ref") || contains("simple")) return 2;
  return contains("gemm") && !contains("brgemm") ? 1 : 0;
}

void fail(const std::string& what, const dnnl::error& error) {
  throw Error("onednn: " + what + ": " + error.what());
}

}  // namespace duplex::onednn
