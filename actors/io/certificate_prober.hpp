// SPDX-License-Identifier: Apache-2.0
//
// CertificateProber — finds out why a server's certificate was refused, by one more handshake.
//
//   connector, ADS transport: "certificate verify failed" ─▶ [ask] ─▶ one thread, epoll ─┐
//                                       answer(reason) ◀─ known reasons ◀─ handshake ◀───┘
//
// The prober makes a text and decides nothing. gRPC alone verifies the connections that carry data.
//
// Invariants
//   R1  A server is probed at most once in `kept_for` for equal address, server name and roots. All
//       questions in that time get the same reason.
//   R2  An answer comes at the latest `longest` after its question. At most `at_once` probes run at
//       once, and at most `most_known` begin in `kept_for`. Questions beyond that get no reason.
//   R3  No thread waits for a probe. The prober's own thread begins with the first question.

#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "actors/io/tls_files.hpp"
#include "messages/ids.hpp"

namespace signalbox::actors {

struct CertificateQuestion {
  std::string address;                    ///< "1.2.3.4:443" or "[::1]:443".
  std::string server_name;                ///< The name that the failed handshake sent (SNI).
  std::shared_ptr<const PemTexts> texts;  ///< The texts with the roots of the failed handshake.
  std::string roots;  ///< Says where the roots are from, as ConnectionSecurity::roots does.
  Instant until = Instant::max();  ///< A probe for this question ends by then.
};

/// Asks why a certificate was refused; thread-safe, never blocks, also after the prober's end.
/// True: `answer` gets the reason, or "" if it is not known, once and not inside the call. False:
/// there is no answer.
using AskForReason =
    std::function<bool(CertificateQuestion, std::function<void(const std::string& reason)> answer)>;

struct CertificateProbes {
  Duration longest = std::chrono::seconds(1);
  Duration kept_for = std::chrono::minutes(1);
  std::size_t at_once = 64;
  std::size_t most_known = 1024;
};

class CertificateProber {
 public:
  explicit CertificateProber(CertificateProbes limits = {});

  /// Joins the thread, so it must not be called from an answer. Answers the remaining questions.
  ~CertificateProber();

  CertificateProber(const CertificateProber&) = delete;
  CertificateProber& operator=(const CertificateProber&) = delete;

  AskForReason asker() const;

 private:
  class Desk;
  const std::shared_ptr<Desk> desk_;
};

}  // namespace signalbox::actors
