// Makes every operation an OpUnderTest.
#pragma once
#include "tests/core/operations/fixture.h"

namespace duplex::test {

OpMaker conv_op(const ConvSpec& spec);
OpMaker linear_op(const LinearSpec& spec);
OpMaker pool_op(const PoolSpec& spec);
OpMaker lrn_op(const LrnSpec& spec);
/// It runs in training; its inputs are x, gamma and beta.
OpMaker batch_norm_op(const BatchNormSpec& spec);
OpMaker activation_op(ActivationKind kind);
OpMaker dropout_op(float rate, const DropoutDraw& draw);
OpMaker concat_op();
OpMaker add_op(bool relu);
OpMaker pad_channels_op(std::int64_t channels);

}  // namespace duplex::test
