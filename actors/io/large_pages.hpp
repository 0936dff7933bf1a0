// SPDX-License-Identifier: Apache-2.0
//
// large_pages — memory for data that calls access at random.
//
//   lb::PolicyOptions::session_memory ─▶ [pool] ─▶ pages of 2 MiB ◀─ the system
//
// A call's session may be on any of thousands of hosts. If each host had pages of its own, a pick
// would wait longer for address translation than for the memory. On one large page the translation
// is usually cached. A system without large pages gives ordinary pages.
//
// Freed memory is reused. Only pages of pieces beyond 4 MiB return to the system.

#pragma once

#include <memory_resource>

namespace signalbox::actors {

/// One resource for the process, until it ends. Thread-safe; takes a lock, so it is never used
/// during a pick. Throws std::bad_alloc.
std::pmr::memory_resource& large_pages();

}  // namespace signalbox::actors
