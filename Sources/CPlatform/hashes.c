/* SPDX-License-Identifier: Apache-2.0
 *
 * SHA3-256 (FIPS 202) of libcrypto, which is looked for at run time: nothing
 * is linked with it.
 *
 * OpenSSL cleans itself up in a handler of exit that would run before the
 * library's own, which still writes. So it is asked not to, and its digest is
 * taken from a library context that is nobody else's: what the host does with
 * OpenSSL at its end does not reach it.
 */
#include <dlfcn.h>
#include <pthread.h>

#include "CPlatform.h"
#include "internal.h"

static struct {
  void *(*create)(void);
  void (*destroy)(void *);
  int (*begin)(void *, const void *, void *);
  int (*add)(void *, const void *, size_t);
  int (*end)(void *, unsigned char *, unsigned int *);
  const void *digest;
} crypto;

/* OPENSSL_INIT_NO_ATEXIT of openssl/crypto.h. */
static const uint64_t no_exit_handler = 0x00080000u;

/* OpenSSL 3 looks a digest up by its name, earlier ones have a function. */
static const void *find_digest(void *library) {
  int (*start)(uint64_t, const void *) = NULL;
  void *(*context)(void) = NULL;
  void *(*fetch)(void *, const char *, const char *) = NULL;
  const void *(*get)(void) = NULL;
  *(void **)&start = dlsym(library, "OPENSSL_init_crypto");
  *(void **)&context = dlsym(library, "OSSL_LIB_CTX_new");
  *(void **)&fetch = dlsym(library, "EVP_MD_fetch");
  *(void **)&get = dlsym(library, "EVP_sha3_256");
  if (!start || !start(no_exit_handler, NULL)) return NULL;
  if (!context || !fetch) return get ? get() : NULL;
  void *own = context();
  return own ? fetch(own, "SHA3-256", NULL) : NULL;
}

static bool load(const char *name) {
  void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (!library) return false;
  *(void **)&crypto.create = dlsym(library, "EVP_MD_CTX_new");
  *(void **)&crypto.destroy = dlsym(library, "EVP_MD_CTX_free");
  *(void **)&crypto.begin = dlsym(library, "EVP_DigestInit_ex");
  *(void **)&crypto.add = dlsym(library, "EVP_DigestUpdate");
  *(void **)&crypto.end = dlsym(library, "EVP_DigestFinal_ex");
  if (crypto.create && crypto.destroy && crypto.begin && crypto.add &&
      crypto.end)
    crypto.digest = find_digest(library);
  if (!crypto.digest) dlclose(library);
  return crypto.digest != NULL;
}

static void load_once(void) {
  (void)(load("libcrypto.so.3") || load("libcrypto.so.1.1") ||
         load("libcrypto.so"));
}

bool cbr_hash_prepare(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, load_once);
  return crypto.digest != NULL;
}

void *cbr_hash_create(void) {
  return crypto.digest ? crypto.create() : NULL;
}

void cbr_hash_destroy(void *hash) {
  if (hash) crypto.destroy(hash);
}

bool cbr_hash_begin(void *hash) {
  return crypto.begin(hash, crypto.digest, NULL) == 1;
}

bool cbr_hash_add(void *hash, const void *bytes, size_t count) {
  return crypto.add(hash, bytes, count) == 1;
}

bool cbr_hash_end(void *hash, uint8_t digest[CBR_HASH_BYTES]) {
  unsigned int count = 0;
  return crypto.end(hash, digest, &count) == 1 && count == CBR_HASH_BYTES;
}
