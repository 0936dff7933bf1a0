// SPDX-License-Identifier: Apache-2.0
//
// large_pages — the system's pages of 2 MiB, in a pool for data that calls access at random.
//
//   lb::PolicyOptions::session_memory ─▶ lb::PagePool ─▶ [large_pages] ◀─ the system
//
// A system without large pages gives ordinary pages. Only pages of pieces beyond 4 MiB return to
// the system.

#pragma once

#include <memory_resource>

namespace signalbox::actors {

/// One pool for the process, until it ends. Thread-safe; takes a lock, so it is never used
/// during a pick. Throws std::bad_alloc.
std::pmr::memory_resource& large_pages();

}  // namespace signalbox::actors
