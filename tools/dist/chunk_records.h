// This is what a checkpoint of an asynchronous run says of an owner's chunks, as text: which
// gradients are in them, and how stale these were.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "net/rendezvous/resume.h"
#include "net/store/store.h"

namespace duplex::tools {

/// "0-56:25:12,13;57-99:26:13,13": chunks 0 to 56 have had 25 updates, by all gradients of the
/// first worker before its step 12 and of the second before 13, and so on. Chunks of other ranks,
/// whose record has no workers, are left out.
std::string text_of(const std::vector<net::ChunkRecord>& records);
/// Reads it again. Throws Error if it is not such a text of so many chunks and workers.
std::vector<net::ChunkRecord> parse_records(const std::string& text, std::size_t chunks,
                                            int workers);

/// By worker: the first step that is not in all of these chunks; empty: there are none.
std::vector<std::uint64_t> positions_of(const std::vector<net::ChunkRecord>& records);

/// By worker: the step before which it need not train on, since steps from there on are in all
/// chunks, which others have trained in its place; ResumePoint::no_end: there are none.
std::vector<std::uint64_t> ends_of(const std::vector<net::ChunkRecord>& records);

/// "0: 5/0/0 5/2/1;1: ..." with chunks/sum/most of each step of a worker, or "0*2: ..." of each
/// two.
std::string text_of(const std::vector<net::Staleness>& steps);
/// Reads it again; a damaged text is cut short. Steps whose gradients are in none of the chunks are
/// left out.
std::vector<net::Staleness> parse_staleness(const std::string& text,
                                            const std::vector<net::ChunkRecord>& records);

}  // namespace duplex::tools
