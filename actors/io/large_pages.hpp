// SPDX-License-Identifier: Apache-2.0
//
// large_pages — memory for what calls touch at random.
//
//   lb::PolicyOptions::session_memory ─▶ [pool] ─▶ pages of 2 MiB ◀─ the system
//
// The host of a call's session is any of thousands. Where each has pages of its own, a pick waits
// for the translation of addresses longer than for the memory; on one large page the translation is
// as a rule at hand. If the system has no large pages, it gives usual ones.
//
// What is given back serves what comes later; pages of pieces beyond 4 MiB go back to the
// system.

#pragma once

#include <memory_resource>

namespace signalbox::actors {

/// Of the process, until it ends. Thread-safe; takes a lock, so never on the path of a pick. Throws
/// std::bad_alloc.
std::pmr::memory_resource& large_pages();

}  // namespace signalbox::actors
