/* The matcher of our own under other names, so that it can stand beside the one that the library was built with: included
 * before src/match/literals_portable.c is compiled once more for the tests. */
#define oos_literals beside_literals
#define oos_literal_scan beside_literal_scan
#define oos_literals_create beside_literals_create
#define oos_literal_scan_open beside_literal_scan_open
#define oos_literal_scan_close beside_literal_scan_close
#define oos_literal_scan_feed beside_literal_scan_feed
#define oos_literal_scan_restart beside_literal_scan_restart
