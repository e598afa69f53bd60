/* Only in portable builds. Debian's libmicrohttpd.a knows HTTPS and asks for GnuTLS, which is larger than all the rest together.
 * Our listener never speaks TLS: these names are there so that it links, and refuse should anybody call them. */
#define REFUSES(name)                                                                                        \
    int name(void);                                                                                          \
    int name(void)                                                                                           \
    {                                                                                                        \
        return -1; /* GNUTLS_E_...: any negative number is an error */                                       \
    }

REFUSES(gnutls_alpn_set_protocols)
REFUSES(gnutls_bye)
REFUSES(gnutls_certificate_allocate_credentials)
REFUSES(gnutls_certificate_free_credentials)
REFUSES(gnutls_certificate_server_set_request)
REFUSES(gnutls_certificate_set_dh_params)
REFUSES(gnutls_certificate_set_retrieve_function2)
REFUSES(gnutls_certificate_set_retrieve_function3)
REFUSES(gnutls_certificate_set_x509_key_mem)
REFUSES(gnutls_certificate_set_x509_key_mem2)
REFUSES(gnutls_certificate_set_x509_trust_mem)
REFUSES(gnutls_cipher_get)
REFUSES(gnutls_credentials_set)
REFUSES(gnutls_deinit)
REFUSES(gnutls_dh_params_deinit)
REFUSES(gnutls_dh_params_import_pkcs3)
REFUSES(gnutls_dh_params_init)
REFUSES(gnutls_global_deinit)
REFUSES(gnutls_global_init)
REFUSES(gnutls_handshake)
REFUSES(gnutls_init)
REFUSES(gnutls_priority_deinit)
REFUSES(gnutls_priority_init)
REFUSES(gnutls_priority_set)
REFUSES(gnutls_protocol_get_version)
REFUSES(gnutls_psk_allocate_server_credentials)
REFUSES(gnutls_psk_free_server_credentials)
REFUSES(gnutls_psk_set_server_credentials_function)
REFUSES(gnutls_record_check_pending)
REFUSES(gnutls_record_get_direction)
REFUSES(gnutls_record_recv)
REFUSES(gnutls_record_send)
REFUSES(gnutls_session_get_ptr)
REFUSES(gnutls_session_set_ptr)
REFUSES(gnutls_transport_set_int2)

const char *gnutls_strerror(int code);
const char *gnutls_strerror(int code)
{
    (void)code;
    return "built without TLS";
}

/* A pointer to a function, and never followed. */
extern void *gnutls_malloc;
void *gnutls_malloc = 0;
