/* tls.c - TLS by GnuTLS, or word that this build has none. */
#include "server/net/net.h"

#include <stdlib.h>

#ifdef SINTER_HAVE_GNUTLS

#include <gnutls/gnutls.h>
#include <pthread.h>

struct srv_tls {
    pthread_mutex_t lock;
    char *certificate, *key, *client_ca;
    gnutls_certificate_credentials_t credentials;
    gnutls_priority_t priority;
    /* credentials that a reload replaced: sessions may still use them */
    gnutls_certificate_credentials_t old[16];
    int old_count;
};

bool srv_tls_available(void) {
    return true;
}

static sn_status load(srv_tls *tls, gnutls_certificate_credentials_t *out, sn_error *err) {
    gnutls_certificate_credentials_t credentials;
    int code = gnutls_certificate_allocate_credentials(&credentials);
    if (code < 0) return sni_fail_memory(err);
    code = gnutls_certificate_set_x509_key_file(credentials, tls->certificate, tls->key,
                                                GNUTLS_X509_FMT_PEM);
    const char *what = "certificate or key";
    if (code >= 0 && tls->client_ca) {
        what = "client CA";
        code = gnutls_certificate_set_x509_trust_file(credentials, tls->client_ca,
                                                      GNUTLS_X509_FMT_PEM);
        if (code == 0) code = GNUTLS_E_NO_CERTIFICATE_FOUND;
    }
    if (code < 0) {
        gnutls_certificate_free_credentials(credentials);
        return sni_fail(err, SN_INVALID_ARGUMENT, "TLS %s: %s", what, gnutls_strerror(code));
    }
    *out = credentials;
    return SN_OK;
}

sn_status srv_tls_load(const char *certificate, const char *key, const char *client_ca,
                       srv_tls **out, sn_error *err) {
    srv_tls *tls = calloc(1, sizeof *tls);
    if (!tls) return sni_fail_memory(err);
    pthread_mutex_init(&tls->lock, NULL);
    tls->certificate = strdup(certificate);
    tls->key = strdup(key);
    tls->client_ca = client_ca ? strdup(client_ca) : NULL;
    sn_status status = SN_OK;
    if (!tls->certificate || !tls->key || (client_ca && !tls->client_ca)) {
        status = sni_fail_memory(err);
    }
    if (status == SN_OK && gnutls_priority_init(&tls->priority,
                                                "SECURE128:+SECURE192:-VERS-ALL:+VERS-TLS1.3:"
                                                "+VERS-TLS1.2:%SERVER_PRECEDENCE",
                                                NULL) < 0) {
        status = sni_fail(err, SN_INTERNAL, "TLS settings are not understood");
    }
    if (status == SN_OK) status = load(tls, &tls->credentials, err);
    if (status != SN_OK) {
        srv_tls_free(tls);
        return status;
    }
    *out = tls;
    return SN_OK;
}

sn_status srv_tls_reload(srv_tls *tls, sn_error *err) {
    gnutls_certificate_credentials_t fresh;
    SN_TRY(load(tls, &fresh, err));
    pthread_mutex_lock(&tls->lock);
    bool fits = tls->old_count < (int)(sizeof tls->old / sizeof tls->old[0]);
    if (fits) {
        tls->old[tls->old_count++] = tls->credentials;
        tls->credentials = fresh;
    }
    pthread_mutex_unlock(&tls->lock);
    if (fits) return SN_OK;
    gnutls_certificate_free_credentials(fresh);
    return sni_fail(err, SN_LIMIT, "certificates were renewed too often; restart the server");
}

void srv_tls_free(srv_tls *tls) {
    if (!tls) return;
    for (int i = 0; i < tls->old_count; i++) gnutls_certificate_free_credentials(tls->old[i]);
    if (tls->credentials) gnutls_certificate_free_credentials(tls->credentials);
    if (tls->priority) gnutls_priority_deinit(tls->priority);
    pthread_mutex_destroy(&tls->lock);
    free(tls->certificate);
    free(tls->key);
    free(tls->client_ca);
    free(tls);
}

void *srv_tls_open(srv_tls *tls, int fd, const char *alpn) {
    gnutls_session_t session;
    if (gnutls_init(&session, GNUTLS_SERVER | GNUTLS_NONBLOCK | GNUTLS_NO_SIGNAL) < 0) return NULL;
    pthread_mutex_lock(&tls->lock);
    gnutls_certificate_credentials_t credentials = tls->credentials;
    pthread_mutex_unlock(&tls->lock);
    gnutls_priority_set(session, tls->priority);
    gnutls_credentials_set(session, GNUTLS_CRD_CERTIFICATE, credentials);
    if (tls->client_ca) {
        gnutls_certificate_server_set_request(session, GNUTLS_CERT_REQUIRE);
        gnutls_session_set_verify_cert(session, NULL, 0);
    }
    if (alpn) {
        gnutls_datum_t name = {(unsigned char *)(uintptr_t)alpn, (unsigned)strlen(alpn)};
        gnutls_alpn_set_protocols(session, &name, 1, 0);
    }
    gnutls_transport_set_int(session, fd);
    return session;
}

void srv_tls_close(void *session) {
    if (!session) return;
    gnutls_bye(session, GNUTLS_SHUT_WR);
    gnutls_deinit(session);
}

int srv_tls_handshake(void *session, bool *wants_write) {
    for (;;) {
        int code = gnutls_handshake(session);
        if (code == GNUTLS_E_SUCCESS) return 1;
        if (code == GNUTLS_E_AGAIN) {
            *wants_write = gnutls_record_get_direction(session) == 1;
            return SRV_AGAIN;
        }
        if (code != GNUTLS_E_INTERRUPTED && gnutls_error_is_fatal(code)) return SRV_BROKEN;
    }
}

ssize_t srv_tls_read(void *session, void *buffer, size_t size) {
    for (;;) {
        ssize_t got = gnutls_record_recv(session, buffer, size);
        if (got >= 0) return got;
        if (got == GNUTLS_E_AGAIN) return SRV_AGAIN;
        if (got == GNUTLS_E_PREMATURE_TERMINATION) return 0;
        if (gnutls_error_is_fatal((int)got)) return SRV_BROKEN;
        if (got == GNUTLS_E_REHANDSHAKE) return SRV_BROKEN; /* not offered */
    }
}

/* A record that could not be sent whole must be offered again as it was: GnuTLS keeps it, and a
 * call without data sends it. What is accepted is reported at once, so the caller never repeats. */
ssize_t srv_tls_write(void *session, const struct iovec *pieces, int count) {
    ssize_t total = 0;
    for (int i = 0; i < count; i++) {
        const char *at = pieces[i].iov_base;
        size_t left = pieces[i].iov_len;
        while (left > 0) {
            ssize_t put = gnutls_record_send(session, at, left);
            if (put == GNUTLS_E_INTERRUPTED) continue;
            if (put == GNUTLS_E_AGAIN) return total ? total : SRV_AGAIN;
            if (put < 0) return SRV_BROKEN;
            at += put;
            left -= (size_t)put;
            total += put;
        }
    }
    return total;
}

#else

bool srv_tls_available(void) {
    return false;
}

sn_status srv_tls_load(const char *certificate, const char *key, const char *client_ca,
                       srv_tls **out, sn_error *err) {
    (void)certificate, (void)key, (void)client_ca, (void)out;
    return sni_fail(err, SN_UNSUPPORTED,
                    "this build has no TLS: GnuTLS was not there (Debian: libgnutls28-dev)");
}

sn_status srv_tls_reload(srv_tls *tls, sn_error *err) {
    (void)tls, (void)err;
    return SN_OK;
}

void srv_tls_free(srv_tls *tls) {
    (void)tls;
}

void *srv_tls_open(srv_tls *tls, int fd, const char *alpn) {
    (void)tls, (void)fd, (void)alpn;
    return NULL;
}

void srv_tls_close(void *session) {
    (void)session;
}

int srv_tls_handshake(void *session, bool *wants_write) {
    (void)session, (void)wants_write;
    return SRV_BROKEN;
}

ssize_t srv_tls_read(void *session, void *buffer, size_t size) {
    (void)session, (void)buffer, (void)size;
    return SRV_BROKEN;
}

ssize_t srv_tls_write(void *session, const struct iovec *pieces, int count) {
    (void)session, (void)pieces, (void)count;
    return SRV_BROKEN;
}

#endif
