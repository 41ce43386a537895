// Convolution (2.7) in plain loops: with g the group of filter f, c over the channels of group g,
//   y[n,f,oy,ox] = b[f] + sum over c, ky, kx of w[f,c,ky,kx] * x[n,c,iy,ix],
//   iy = oy * stride + ky - padding, ix = ox * stride + kx - padding,
// where x is zero outside the map. The innermost loop runs along a row of the output.
#include "core/reference/conv.h"

#include <vector>

#include "core/reference/rows.h"

namespace duplex::reference {
namespace {

class ReferenceConv : public Conv {
 public:
  ReferenceConv(const ConvSpec& spec, const TensorDesc& x_desc) : spec_(spec) {
    x = x_desc;
    weights = plain_desc(weights_shape(spec, x.shape));
    if (spec.bias) bias = plain_desc({spec.filters});
    y = plain_desc(output_shape(spec, x.shape));

    xs_ = x.shape;
    ys_ = y.shape;
    if (sees_no_neighbours()) {  // Then the map counts as one long row.
      xs_ = {xs_.n(), xs_.c(), 1, xs_.h() * xs_.w()};
      ys_ = {ys_.n(), ys_.c(), 1, ys_.h() * ys_.w()};
    }
    for (std::int64_t kx = 0; kx < spec.window.width; ++kx) columns_.push_back(columns_on_map(kx));
  }

  void forward(Tensor& y_out, const Tensor& x_in, const Tensor& w, const Tensor& b) override {
    for (std::int64_t n = 0; n < ys_.n(); ++n) {
      for (std::int64_t f = 0; f < ys_.c(); ++f) {
        for (std::int64_t oy = 0; oy < ys_.h(); ++oy) {
          float* y_row = y_out.data + at(ys_, n, f, oy, 0);
          std::fill(y_row, y_row + ys_.w(), spec_.bias ? b.data[f] : 0.0F);
          for (std::int64_t c = 0; c < weights.shape.c(); ++c) {
            for (std::int64_t ky = 0; ky < weights.shape.h(); ++ky) {
              const std::int64_t iy = input_row(oy, ky);
              if (iy < 0) continue;
              const float* x_row = x_in.data + at(xs_, n, input_channel(f, c), iy, 0);
              const float* w_row = w.data + at(weights.shape, f, c, ky, 0);
              for (std::int64_t kx = 0; kx < weights.shape.w(); ++kx) {
                const Columns& on = columns_[static_cast<std::size_t>(kx)];
                add_scaled(y_row + on.first, x_row + on.input, w_row[kx], on.count,
                           spec_.window.stride_x);
              }
            }
          }
          if (spec_.relu) {
            for (std::int64_t ox = 0; ox < ys_.w(); ++ox) y_row[ox] = std::max(y_row[ox], 0.0F);
          }
        }
      }
    }
  }

  // dx[n,c,iy,ix] = sum over f, ky, kx of w[f,c,ky,kx] * dy[n,f,oy,ox], for the (oy, ox) that read
  // (iy, ix).
  void backward_data(Tensor& dx, const Tensor& dy, const Tensor& w) override {
    std::fill(dx.data, dx.data + dx.stored(), 0.0F);
    for (std::int64_t n = 0; n < ys_.n(); ++n) {
      for (std::int64_t f = 0; f < ys_.c(); ++f) {
        for (std::int64_t c = 0; c < weights.shape.c(); ++c) {
          for (std::int64_t oy = 0; oy < ys_.h(); ++oy) {
            const float* dy_row = dy.data + at(ys_, n, f, oy, 0);
            for (std::int64_t ky = 0; ky < weights.shape.h(); ++ky) {
              const std::int64_t iy = input_row(oy, ky);
              if (iy < 0) continue;
              float* dx_row = dx.data + at(xs_, n, input_channel(f, c), iy, 0);
              const float* w_row = w.data + at(weights.shape, f, c, ky, 0);
              for (std::int64_t kx = 0; kx < weights.shape.w(); ++kx) {
                const Columns& on = columns_[static_cast<std::size_t>(kx)];
                scatter_scaled(dx_row + on.input, dy_row + on.first, w_row[kx], on.count,
                               spec_.window.stride_x);
              }
            }
          }
        }
      }
    }
  }

  // dw[f,c,ky,kx] = sum over n, oy, ox of dy[n,f,oy,ox] * x[n,c,iy,ix]; db[f] = sum of
  // dy[n,f,oy,ox].
  void backward_weights(Tensor& dw, Tensor& db, const Tensor& dy, const Tensor& x_in) override {
    for (std::int64_t f = 0; f < ys_.c(); ++f) {
      for (std::int64_t c = 0; c < weights.shape.c(); ++c) {
        for (std::int64_t ky = 0; ky < weights.shape.h(); ++ky) {
          for (std::int64_t kx = 0; kx < weights.shape.w(); ++kx) {
            const Columns& on = columns_[static_cast<std::size_t>(kx)];
            double sum = 0.0;
            for (std::int64_t n = 0; n < ys_.n(); ++n) {
              for (std::int64_t oy = 0; oy < ys_.h(); ++oy) {
                const std::int64_t iy = input_row(oy, ky);
                if (iy < 0) continue;
                const float* dy_row = dy.data + at(ys_, n, f, oy, 0);
                const float* x_row = x_in.data + at(xs_, n, input_channel(f, c), iy, 0);
                sum += double{
                    dot(dy_row + on.first, x_row + on.input, on.count, spec_.window.stride_x)};
              }
            }
            dw.data[at(weights.shape, f, c, ky, kx)] = static_cast<float>(sum);
          }
        }
      }
    }
    if (spec_.bias) {
      for (std::int64_t f = 0; f < ys_.c(); ++f) {
        double sum = 0.0;
        for (std::int64_t n = 0; n < ys_.n(); ++n) {
          const float* plane = dy.data + at(ys_, n, f, 0, 0);
          for (std::int64_t i = 0; i < ys_.h() * ys_.w(); ++i) sum += double{plane[i]};
        }
        db.data[f] = static_cast<float>(sum);
      }
    }
  }

 private:
  /// For one kx, the `count` outputs of a row from `first` on read a column of the map, not of the
  /// padding. The first of them reads column `input`, and each next one reads `stride` further.
  struct Columns {
    std::int64_t first = 0, count = 0, input = 0;
  };

  bool sees_no_neighbours() const {
    const Window& window = spec_.window;
    const Padding& padding = window.padding;
    return window.height == 1 && window.width == 1 && window.stride_y == 1 &&
           window.stride_x == 1 && padding.top == 0 && padding.left == 0 && padding.bottom == 0 &&
           padding.right == 0;
  }

  Columns columns_on_map(std::int64_t kx) const {
    const std::int64_t stride = spec_.window.stride_x;
    const auto input = [&](std::int64_t ox) {
      return ox * stride + kx - spec_.window.padding.left;
    };
    Columns columns;
    while (columns.first < ys_.w() && input(columns.first) < 0) ++columns.first;
    std::int64_t end = columns.first;
    while (end < ys_.w() && input(end) < xs_.w()) ++end;
    columns.count = end - columns.first;
    columns.input = columns.count > 0 ? input(columns.first) : 0;
    return columns;
  }

  /// Returns the row of x that output row oy reads with row ky of the window, or -1 where that is
  /// padding.
  std::int64_t input_row(std::int64_t oy, std::int64_t ky) const {
    const std::int64_t iy = oy * spec_.window.stride_y + ky - spec_.window.padding.top;
    return iy < xs_.h() ? std::max(iy, std::int64_t{-1}) : -1;
  }

  /// Returns channel c of the group that filter f belongs to, as a channel of x.
  std::int64_t input_channel(std::int64_t f, std::int64_t c) const {
    const std::int64_t group = f / (spec_.filters / spec_.groups);
    return group * weights.shape.c() + c;
  }

  ConvSpec spec_;
  Shape xs_, ys_;  ///< The shapes of x and y as the loops see them.
  std::vector<Columns> columns_;
};

}  // namespace

std::unique_ptr<Conv> make_conv(const ConvSpec& spec, const TensorDesc& x) {
  return std::make_unique<ReferenceConv>(spec, x);
}

}  // namespace duplex::reference
