// Local response normalisation (2.8) in plain loops. With s[c] = k + alpha / size * sum of x[j]^2
// over the channels j within size / 2 of c:
//   y[c] = x[c] * s[c]^-beta
//   dx[c] = dy[c] * s[c]^-beta
//           - 2 * alpha * beta / size * x[c] * sum over j within size / 2 of c of
//             dy[j] * x[j] * s[j]^(-beta - 1)
#include "core/reference/lrn.h"

#include <cmath>
#include <vector>

#include "core/error.h"
#include "core/reference/rows.h"

namespace duplex::reference {
namespace {

class ReferenceLrn : public Lrn {
 public:
  ReferenceLrn(const LrnSpec& spec, const TensorDesc& x_desc) : spec_(spec) {
    if (spec.size < 1 || spec.size % 2 == 0) throw Error("LRN: the size must be odd");
    x = y = x_desc;
    map_ = x.shape.h() * x.shape.w();
    scale_.resize(static_cast<std::size_t>(x.shape.elements()));
  }

  void forward(Tensor& y_out, const Tensor& x_in) override {
    const float weight = spec_.alpha / static_cast<float>(spec_.size);
    std::fill(scale_.begin(), scale_.end(), spec_.k);
    for_each_neighbour([&](std::int64_t c, std::int64_t j) {
      float* s = scale_.data() + c;
      const float* from = x_in.data + j;
      for (std::int64_t i = 0; i < map_; ++i) s[i] += weight * from[i] * from[i];
    });
    for (std::size_t i = 0; i < scale_.size(); ++i) {
      y_out.data[i] = x_in.data[i] * std::pow(scale_[i], -spec_.beta);
    }
  }

  void backward(Tensor& dx, const Tensor& dy, const Tensor& x_in) override {
    const float weight = 2.0F * spec_.alpha * spec_.beta / static_cast<float>(spec_.size);
    std::vector<float> ratio(scale_.size());  // dy[j] * x[j] * s[j]^(-beta - 1)
    for (std::size_t i = 0; i < scale_.size(); ++i) {
      dx.data[i] = dy.data[i] * std::pow(scale_[i], -spec_.beta);
      ratio[i] = dx.data[i] * x_in.data[i] / scale_[i];
    }
    for_each_neighbour([&](std::int64_t c, std::int64_t j) {
      const float* from = ratio.data() + j;
      for (std::int64_t i = 0; i < map_; ++i) {
        dx.data[c + i] -= weight * x_in.data[c + i] * from[i];
      }
    });
  }

 private:
  /// Calls visit(offset of channel c, offset of channel j) for every two channels of a sample that
  /// are at most size / 2 apart.
  template <typename Visit>
  void for_each_neighbour(Visit visit) const {
    const std::int64_t channels = x.shape.c(), reach = spec_.size / 2;
    for (std::int64_t n = 0; n < x.shape.n(); ++n) {
      for (std::int64_t c = 0; c < channels; ++c) {
        const std::int64_t first = std::max(c - reach, std::int64_t{0});
        const std::int64_t last = std::min(c + reach, channels - 1);
        for (std::int64_t j = first; j <= last; ++j) {
          visit((n * channels + c) * map_, (n * channels + j) * map_);
        }
      }
    }
  }

  LrnSpec spec_;
  std::int64_t map_ = 0;
  std::vector<float> scale_;  ///< s of the last forward.
};

}  // namespace

std::unique_ptr<Lrn> make_lrn(const LrnSpec& spec, const TensorDesc& x) {
  return std::make_unique<ReferenceLrn>(spec, x);
}

}  // namespace duplex::reference
