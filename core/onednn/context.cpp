#include "core/onednn/context.h"

#ifdef _OPENMP
#include <omp.h>
#endif
#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "core/error.h"
#include "core/onednn/compat.h"
#include "core/onednn/layout.h"

namespace duplex::onednn {
namespace {

constexpr std::size_t cache_line = 64;
constexpr std::size_t huge_page = std::size_t{2} << 20;

void set_threads([[maybe_unused]] int threads) {
#ifdef _OPENMP
  omp_set_num_threads(threads);
#endif
}

}  // namespace

Buffer allocate_aligned(std::size_t bytes) {
  const bool big = bytes >= 2 * huge_page;
  const std::size_t alignment = big ? huge_page : cache_line;
  const std::size_t size =
      (std::max<std::size_t>(bytes, 1) + alignment - 1) / alignment * alignment;
  void* data = size < bytes ? nullptr : std::aligned_alloc(alignment, size);
  if (data == nullptr) {
    throw Error("out of memory: " + std::to_string(bytes >> 20) +
                " MiB wanted; a smaller batch needs less");
  }
  if (big) madvise(data, size, MADV_HUGEPAGE);  // Without this advice, it is only slower.
  return {data, bytes, [](void* p) { std::free(p); }};
}

Context::Context(int threads) : threads_(threads) {}

void Context::enter() const {
  set_threads(threads_);
}

int Context::enter_transfer() const {
  const int threads = std::this_thread::get_id() == maker_ ? threads_ : 1;
  set_threads(threads);
  return threads;
}

dnnl::primitive_attr Context::attributes() const {
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attr;
}

void Context::reserve_scratchpad(std::size_t bytes) {
  scratchpad_bytes_ = std::max(scratchpad_bytes_, bytes);
}

void* Context::scratchpad() {
  if (scratchpad_.bytes() < scratchpad_bytes_) {
    scratchpad_ = Buffer();
    scratchpad_ = allocate_aligned(scratchpad_bytes_);
  }
  return scratchpad_.data();
}

float* Context::staging(Slot slot, std::size_t bytes) {
  Buffer& buffer = staging_.at(slot);
  if (buffer.bytes() < bytes) {
    buffer = Buffer();
    buffer = allocate_aligned(bytes);
  }
  return static_cast<float*>(buffer.data());
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
    : context_(context), slot_(slot), from_bytes_(from.get_size()), to_bytes_(to.get_size()) {
  const dnnl::memory::desc source = with_extents_of(from, to);
  const dnnl::memory::desc target = with_extents_of(to, source);
  if (source != target) reorder_ = make_reorder(context, source, target);
}

const float* Conversion::input(const float* data) {
  if (!reorder_) return data;
  float* converted = context_->staging(slot_, to_bytes_);
  reorder_.run({{DNNL_ARG_FROM, data}, {DNNL_ARG_TO, converted}});
  return converted;
}

float* Conversion::target(float* data) {
  return reorder_ ? context_->staging(slot_, from_bytes_) : data;
}

void Conversion::finish(float* data) {
  if (!reorder_) return;
  reorder_.run({{DNNL_ARG_FROM, context_->staging(slot_, from_bytes_)}, {DNNL_ARG_TO, data}});
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
