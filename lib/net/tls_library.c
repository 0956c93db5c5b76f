/*
 * Loads OpenSSL, or takes it as it was linked (TLS=linked), into a table of its functions.
 * tls_context.c, tls.c and tls_failure.c call it by that.
 */
#include <dlfcn.h>
#include <stdint.h>

#include "net/tls_library.h"

#ifdef RLOCK_TLS_LINKED

bool rlock__tls_library_load(struct rlock__tls_library *out, const char **why_out)
{
	static const struct rlock__tls_library linked = {
#define RLOCK__TLS_LINKED(name) .name = name,
		RLOCK__TLS_FUNCTIONS(RLOCK__TLS_LINKED)
	};

	*out = linked;
	*why_out = NULL;
	return true;
}

#else

#define TEXT_OF_VALUE(text) #text
#define TEXT_OF(macro) TEXT_OF_VALUE(macro)
/* That of the headers, since another major version has other functions. */
#if OPENSSL_VERSION_MAJOR >= 3
#define SONAME "libssl.so." TEXT_OF(OPENSSL_SHLIB_VERSION)
#else
#define SONAME "libssl.so.1.1"
#endif

/*
 * For package managers, which don't see from the linkage that we may load it: the UAPI group's "ELF dlopen metadata", a
 * JSON text behind the head that elf(5) has for a section of such a kind.
 */
#define METADATA_VENDOR "FDO"
#define METADATA_TYPE 0x407c0c0a
#define METADATA_TEXT                                                                              \
	"[{\"feature\":\"tls\",\"description\":\"Connections over TLS\",\"priority\":"             \
	"\"recommended\",\"soname\":[\"" SONAME "\"]}]"

static const struct {
	uint32_t name_size, text_size, type;
	char name[sizeof(METADATA_VENDOR)];
	_Alignas(uint32_t) char text[sizeof(METADATA_TEXT)];
} metadata __attribute__((used, section(".note.dlopen"), aligned(sizeof(uint32_t)))) = {
	sizeof(METADATA_VENDOR), sizeof(METADATA_TEXT), METADATA_TYPE,
	METADATA_VENDOR,         METADATA_TEXT,
};

bool rlock__tls_library_load(struct rlock__tls_library *out, const char **why_out)
{
	/* OpenSSL can't undo all that it sets up, so it is never unloaded. */
	void *library = dlopen(SONAME, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
	const struct {
		const char *name;
		void *function;
	} table[] = {
#define RLOCK__TLS_ROW(name) { #name, &out->name },
		RLOCK__TLS_FUNCTIONS(RLOCK__TLS_ROW)
	};

	for (size_t i = 0; library != NULL && i < sizeof(table) / sizeof(table[0]); i++) {
		/* POSIX has it that a pointer to a function fits into one to an object, which C does not say. */
		*(void **)table[i].function = dlsym(library, table[i].name);
		if (*(void **)table[i].function == NULL)
			library = NULL;
	}
	*why_out = library == NULL ? dlerror() : NULL;
	return library != NULL;
}

#endif
