/* Only in portable builds. The zip reader of libarchive.a can decrypt, and would bring Nettle (LGPL) for it. We never have a
 * password: these two tables, which are linked before those of the archive, say "not supported", as libarchive itself does
 * where it is built without cryptography. They are longer than the real ones, so that a function added at the end says it too. */
enum { NOT_SUPPORTED = -2, FUNCTIONS = 32 };

typedef int function(void);

static int refuse(void)
{
    return NOT_SUPPORTED;
}

#define FOUR refuse, refuse, refuse, refuse
#define HERE __attribute__((visibility("hidden")))
extern function *const __archive_cryptor[FUNCTIONS], *const __archive_hmac[FUNCTIONS];
HERE function *const __archive_cryptor[FUNCTIONS] = {FOUR, FOUR, FOUR, FOUR, FOUR, FOUR, FOUR, FOUR};
HERE function *const __archive_hmac[FUNCTIONS] = {FOUR, FOUR, FOUR, FOUR, FOUR, FOUR, FOUR, FOUR};
