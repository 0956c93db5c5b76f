/*
 * A user's program in C++17, for tests/release/library.bats: what lock.c does, with objects that free themselves.
 *
 *	lock URL NAME COMMAND
 */
#include <rlock.h>

#include <cstdlib>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>

template <auto function> struct freed_by {
	template <typename T> void operator()(T *object) const
	{
		function(object);
	}
};

using url_ptr = std::unique_ptr<rlock_url, freed_by<rlock_url_free>>;
using conn_ptr = std::unique_ptr<rlock_conn, freed_by<rlock_conn_free>>;
using hold_ptr = std::unique_ptr<rlock_hold, freed_by<rlock_hold_free>>;

static url_ptr parse(const char *text)
{
	char why[RLOCK_ERROR_MAX];
	rlock_url *url = nullptr;

	if (rlock_url_parse(text, &url, why) != RLOCK_OK)
		throw std::runtime_error(why);
	return url_ptr(url);
}

static conn_ptr connect(const url_ptr &url)
{
	rlock_url *const urls[] = { url.get() };
	rlock_conn *conn = nullptr;

	if (rlock_conn_new(urls, 1, nullptr, &conn) != RLOCK_OK)
		throw std::bad_alloc();
	return conn_ptr(conn);
}

static void check(const conn_ptr &conn, rlock_status status)
{
	if (status != RLOCK_OK)
		throw std::runtime_error(std::string(rlock_status_name(status)) + ": " +
					 rlock_conn_error(conn.get()));
}

static hold_ptr acquire(const conn_ptr &conn, std::string_view text)
{
	const rlock_name name{ text.data(), text.size() };
	rlock_request request = RLOCK_REQUEST_INIT;
	rlock_hold *hold = nullptr;

	request.names = &name;
	request.name_count = 1;
	request.lease_ms = 10000;
	request.wait_ms = 5000;
	check(conn, rlock_acquire(conn.get(), &request, &hold));
	return hold_ptr(hold);
}

static void look(std::string_view step, const char *command)
{
	std::cout << step << ' ' << std::flush;
	if (std::system(command) != 0)
		throw std::runtime_error("the command failed");
}

int main(int argc, char **argv)
try {
	if (argc != 4)
		throw std::invalid_argument("usage: lock URL NAME COMMAND");
	const conn_ptr conn = connect(parse(argv[1]));
	const hold_ptr hold = acquire(conn, argv[2]);

	look("acquired", argv[3]);
	check(conn, rlock_renew(conn.get(), hold.get(), 60000, rlock_now_ms() + 5000));
	look("renewed", argv[3]);
	check(conn, rlock_release(conn.get(), hold.get(), rlock_now_ms() + 5000));
	look("released", argv[3]);
	return 0;
} catch (const std::exception &error) {
	std::cerr << "lock: " << error.what() << '\n';
	return 1;
}
