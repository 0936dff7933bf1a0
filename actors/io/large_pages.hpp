// SPDX-License-Identifier: Apache-2.0
//
// large_pages — the system's pages of 2 MiB, in a pool for data that calls access at random.
//
//   lb::PolicyOptions::session_memory ─▶ lb::PagePool ─▶ [large_pages] ◀─ the system
//
// A system without large pages gives ordinary pages. A freed allocation of more than 4 MiB returns
// to the system; the pool keeps smaller ones for reuse.

#pragma once

#include <memory_resource>

namespace signalbox::actors {

/// The only pool of the process, which lives until the process ends. Thread-safe; takes a lock, so
/// it is never used during a pick. Throws std::bad_alloc.
std::pmr::memory_resource& large_pages();

}  // namespace signalbox::actors
