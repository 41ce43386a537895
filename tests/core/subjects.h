// The operations as subjects.
#pragma once
#include "tests/core/subject.h"

namespace duplex::test {

SubjectMaker conv_subject(const ConvSpec& spec);
SubjectMaker linear_subject(const LinearSpec& spec);
SubjectMaker pool_subject(const PoolSpec& spec);
SubjectMaker lrn_subject(const LrnSpec& spec);
/// In training; inputs x, gamma, beta.
SubjectMaker batch_norm_subject(const BatchNormSpec& spec);
SubjectMaker activation_subject(ActivationKind kind);
SubjectMaker dropout_subject(float rate, const DropoutDraw& draw);
SubjectMaker concat_subject();
SubjectMaker add_subject(bool relu);
SubjectMaker pad_channels_subject(std::int64_t channels);

}  // namespace duplex::test
