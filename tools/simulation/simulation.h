// The schedule of dist in virtual time: the same shard map, order of sending, semaphores and rules
// of the store, over links that are shared fairly. Nothing is computed, and no byte moves.
//
// What it leaves out: what a processor's time is worth (a rank's threads never wait for a core),
// loss, and slow start after a pause. What crosses a link beside payload, acknowledgements too, is
// for the rate to allow for; how long they wait is told for a dedicated server alone.
#pragma once
#include "tools/simulation/recorder.h"
#include "tools/simulation/spec.h"

namespace duplex::tools::simulation {

/// Deterministic. `recorder` may be null.
///
/// Memory goes into connections (two for each pair of a worker and an owner, about 400 bytes each)
/// and queued frames; time into frames, of which each costs a few microseconds, and into sharing
/// the links anew whenever a connection falls idle or begins to send, which costs some 30 ns for
/// every connection that sends. Where ranks differ these moments are many: `resolution` takes them
/// together.
Outcome simulate(const Spec& spec, Recorder* recorder);

}  // namespace duplex::tools::simulation
