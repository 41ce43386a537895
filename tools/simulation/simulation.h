// The simulation plays the schedule of dist in virtual time: the same shard map, order of sending,
// semaphores and rules of the store, over links that are shared fairly. Nothing is computed, and no
// byte moves.
//
// It leaves out the cost of a processor's time (a rank's threads never wait for a core), loss, and
// slow start after a pause. The rate has to allow for what crosses a link beside payload,
// acknowledgements too; how long these wait is modelled for a dedicated server alone.
#pragma once
#include "tools/simulation/recorder.h"
#include "tools/simulation/spec.h"

namespace duplex::tools::simulation {

/// The result is deterministic. `recorder` may be null.
///
/// Memory goes into connections (two for each pair of a worker and an owner, about 400 bytes each)
/// and queued frames. Time goes into frames, each of which costs a few microseconds, and into
/// sharing the links anew whenever a connection falls idle or begins to send, which costs some 30
/// ns for every connection that sends. If ranks differ, these moments are many: `resolution` takes
/// them together.
Outcome simulate(const Spec& spec, Recorder* recorder);

}  // namespace duplex::tools::simulation
