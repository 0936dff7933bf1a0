// SPDX-License-Identifier: Apache-2.0
//
// A self-signed certificate for localhost and 127.0.0.1, with its key. It serves tests alone, so
// the key may be public. Good until 2126.
//
//   openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 36500
//     -subj /CN=localhost -addext "subjectAltName=DNS:localhost,IP:127.0.0.1"

#pragma once

namespace signalbox::test {

inline constexpr char kLocalhostKey[] = R"(-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgf1SSxz8gLp5ZjAYV
KuyLGchj/MHffMX8YL+BSuepvGyhRANCAAQZ61q61XjgiX6IJaBnJXFjD0uhHt4y
iDz4Ohxbcw+GowcMP0n4cx9FdI0JMBkaTjsCOyUD+FAaTBvUb11KLT0Z
-----END PRIVATE KEY-----
)";

inline constexpr char kLocalhostCertificate[] = R"(-----BEGIN CERTIFICATE-----
MIIBmzCCAUGgAwIBAgIUKlohSaNoW+eARMqzvMAkvkw1GqUwCgYIKoZIzj0EAwIw
FDESMBAGA1UEAwwJbG9jYWxob3N0MCAXDTI2MTEyMTE4MjcwN1oYDzIxMjYxMDI4
MTgyNzA3WjAUMRIwEAYDVQQDDAlsb2NhbGhvc3QwWTATBgcqhkjOPQIBBggqhkjO
PQMBBwNCAAQZ61q61XjgiX6IJaBnJXFjD0uhHt4yiDz4Ohxbcw+GowcMP0n4cx9F
dI0JMBkaTjsCOyUD+FAaTBvUb11KLT0Zo28wbTAdBgNVHQ4EFgQUG1UXER7D+d2b
sQgAaraDOBBdI+EwHwYDVR0jBBgwFoAUG1UXER7D+d2bsQgAaraDOBBdI+EwDwYD
VR0TAQH/BAUwAwEB/zAaBgNVHREEEzARgglsb2NhbGhvc3SHBH8AAAEwCgYIKoZI
zj0EAwIDSAAwRQIgCFtAvmITWr8PsVnH+utmY16vyHZm7dIOUIOWVkxsHKgCIQD9
mOYzwWn2blTLcNTBA2s298RZfKMAJV47VnGRIzfWJQ==
-----END CERTIFICATE-----
)";

}  // namespace signalbox::test
