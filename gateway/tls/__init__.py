"""TLS: the certificate and its renewal, the handshake, and a pair that the gateway makes itself."""
