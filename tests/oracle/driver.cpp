// Drives the unmodified caching allocator of a torch wheel with the text form of a trace (docs/reference/formats/trace.md) and
// writes what it answered as JSON lines, the form tools/score_replay.py compares with.
// usage: driver TRACE.txt OUT.jsonl | driver bench LIVE EVENTS
// TORCH is the version as a number: 21300 for 2.13.0.
#include <c10/cuda/CUDACachingAllocator.h>
#if __has_include(<c10/cuda/CUDAAllocatorConfig.h>)
#include <c10/cuda/CUDAAllocatorConfig.h>
#endif
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAStream.h>

#include <dlfcn.h>
#include <time.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <unordered_map>
#include <vector>

namespace allocator = c10::cuda::CUDACachingAllocator;
using c10::cuda::CUDAStream;
using u64 = unsigned long long;
using pool_id = std::pair<u64, u64>; // MempoolId_t, which changed its namespace

extern "C" {
void standin_complete(void *stream);
void standin_capture(void *stream, int on);
}
namespace c10::cuda::_internal {
void setHasPrimaryContext(bool (*func)(c10::DeviceIndex));
}

static std::string events; // of the current operation
static std::map<u64, u64> segments;

static std::string quoted(const std::string &text)
{
    std::string out = "\"";
    for (char c : text) {
        if (c == '"' || c == '\\') out += '\\';
        if (c == '\n')
            out += "\\n";
        else
            out += c;
    }
    return out + "\"";
}

static void on_event(const allocator::TraceEntry &entry)
{
    static const char *const names[] = {"alloc",         "free_requested", "free_completed", "segment_alloc",
                                        "segment_free",  "segment_map",    "segment_unmap",  "snapshot",
                                        "oom",           "annotate"};
    int const action = static_cast<int>(entry.action_);
    if (action < 0 || action > 8 || action == 7) return;
    if (action == 3) segments[entry.addr_] = entry.size_;
    if (action == 4) segments.erase(entry.addr_);
    std::ostringstream out;
    out << (events.empty() ? "" : ",") << "[\"" << names[action] << "\"," << u64(entry.addr_) << ","
        << u64(entry.size_) << "," << u64(entry.stream_) << "]";
    events += out.str();
}

template <typename Counters> static void put_counters(std::ostream &out, const char *name, const Counters &counters)
{
    static const char *const pools[] = {"all", "small_pool", "large_pool"};
    out << "\"" << name << "\":{";
    for (int i = 0; i < 3; i++)
        out << (i ? "," : "") << "\"" << pools[i] << "\":[" << counters[i].current << "," << counters[i].peak << ","
            << counters[i].allocated << "," << counters[i].freed << "]";
    out << "},";
}

template <typename Counter> static void put_counter(std::ostream &out, const char *name, const Counter &c)
{
    out << "\"" << name << "\":[" << c.current << "," << c.peak << "," << c.allocated << "," << c.freed << "]";
}

static void put_stats(std::ostream &out)
{
    auto const s = allocator::getDeviceStats(0);
    out << "{";
    put_counters(out, "allocation", s.allocation);
    put_counters(out, "segment", s.segment);
    put_counters(out, "active", s.active);
    put_counters(out, "inactive_split", s.inactive_split);
    put_counters(out, "allocated_bytes", s.allocated_bytes);
    put_counters(out, "reserved_bytes", s.reserved_bytes);
    put_counters(out, "active_bytes", s.active_bytes);
    put_counters(out, "inactive_split_bytes", s.inactive_split_bytes);
    put_counters(out, "requested_bytes", s.requested_bytes);
    out << "\"num_alloc_retries\":" << s.num_alloc_retries << ",\"num_ooms\":" << s.num_ooms << ",";
#if TORCH >= 20501
    out << "\"num_sync_all_streams\":" << s.num_sync_all_streams << ",\"num_device_alloc\":" << s.num_device_alloc
        << ",\"num_device_free\":" << s.num_device_free << ",";
#endif
    put_counter(out, "oversize_allocations", s.oversize_allocations);
    out << ",";
    put_counter(out, "oversize_segments", s.oversize_segments);
    out << "}";
}

static void put_layout(std::ostream &out)
{
    bool first = true;
    out << "[";
    for (auto const &s : allocator::snapshot().segments) {
        out << (first ? "" : ",") << "{\"address\":" << s.address << ",\"total_size\":" << s.total_size
            << ",\"stream\":" << u64(s.stream) << ",\"is_large\":" << (s.is_large ? "true" : "false")
            << ",\"is_expandable\":" << (s.is_expandable ? "true" : "false") << ",\"pool\":["
            << s.owner_private_pool_id.first << "," << s.owner_private_pool_id.second << "],\"blocks\":[";
        first = false;
        bool first_block = true;
        for (auto const &b : s.blocks) {
            out << (first_block ? "" : ",") << "[" << b.size << "," << (b.active ? b.requested_size : 0) << ",\""
                << (b.allocated ? "active_allocated" : b.active ? "active_pending_free" : "inactive") << "\"]";
            first_block = false;
        }
        out << "]}";
    }
    out << "]";
}

static CUDAStream stream_of(u64 handle)
{
    return handle ? c10::cuda::getStreamFromExternal(reinterpret_cast<cudaStream_t>(handle), 0)
                  : c10::cuda::getDefaultCUDAStream(0);
}

struct Driver {
    std::unordered_map<u64, c10::DataPtr> live;
    u64 current = 0;
    std::ostringstream answer;

    static pool_id pool_of(const std::string &word)
    {
        u64 first = 0, second = 0;
        std::sscanf(word.c_str(), "%llu.%llu", &first, &second);
        return {first, second};
    }

    void malloc(u64 id, u64 bytes, u64 stream)
    {
        if (stream != current) c10::cuda::setCurrentCUDAStream(stream_of(stream));
        current = stream;
        auto pointer = allocator::get()->allocate(bytes);
        u64 const address = reinterpret_cast<u64>(pointer.get());
        answer << ",\"addr\":" << address;
        auto at = segments.upper_bound(address);
        if (at != segments.begin() && (--at, address < at->first + at->second))
            answer << ",\"seg\":" << at->first << ",\"seg_size\":" << at->second
                   << ",\"off\":" << address - at->first;
        live[id] = std::move(pointer);
    }

    void begin(pool_id pool, bool capture)
    {
#if TORCH >= 20300
        allocator::beginAllocateToPool(0, pool, [](cudaStream_t) { return true; });
#else
        allocator::beginAllocateStreamToPool(0, reinterpret_cast<cudaStream_t>(current), pool);
#endif
        if (!capture) return;
        standin_capture(reinterpret_cast<void *>(current), 1);
#if TORCH >= 21300
        allocator::markCaptureBegin(0);
#endif
    }

    void end(pool_id pool, bool capture)
    {
        if (capture) {
            standin_capture(reinterpret_cast<void *>(current), 0);
#if TORCH >= 21300
            allocator::markCaptureEnd(0);
#endif
        }
#if TORCH >= 20300
        allocator::endAllocateToPool(0, pool);
#else
        allocator::endAllocateStreamToPool(0, reinterpret_cast<cudaStream_t>(current));
#endif
    }

    void pool_operation(const std::string &op, const std::string &word, std::istream &rest)
    {
        auto const pool = pool_of(word);
        std::string value;
        answer << ",\"pool\":[" << pool.first << "," << pool.second << "]";
#if TORCH >= 20800
        if (op == "empty_cache") allocator::emptyCache(pool);
        if (op == "pool_create") allocator::createOrIncrefPool(0, pool);
#else
        if (op == "empty_cache") allocator::emptyCache();
#endif
#if TORCH >= 20600 && TORCH < 20800
        if (op == "pool_create") allocator::ensureExistsAndIncrefPool(0, pool);
#endif
        if (op == "pool_begin" || op == "capture_begin") begin(pool, op[0] == 'c');
        if (op == "pool_end" || op == "capture_end") end(pool, op[0] == 'c');
        if (op == "pool_release") allocator::releasePool(0, pool);
        if (op == "use_on_oom") {
            bool const on = !(rest >> value) || value != "off";
            answer << ",\"value\":" << (on ? 1 : 0);
#if TORCH >= 21100
            allocator::setUseOnOOM(0, pool, on);
#elif TORCH >= 20800
            if (on) allocator::setUseOnOOM(0, pool);
#endif
        }
#if TORCH >= 21000
        if (op == "no_split") allocator::setNoSplit(0, pool);
#endif
    }

    void operation(const std::string &op, std::istream &rest)
    {
        std::string word;
        u64 id = 0, bytes = 0, stream = 0;
        if (op == "malloc") {
            rest >> id >> bytes >> stream;
            answer << ",\"id\":" << id << ",\"size\":" << bytes << ",\"stream\":" << stream;
            malloc(id, bytes, stream);
        } else if (op == "free") {
            rest >> id;
            answer << ",\"id\":" << id;
            if (!live.erase(id)) answer << ",\"skipped\":true";
        } else if (op == "record_stream") {
            rest >> id >> stream;
            answer << ",\"id\":" << id << ",\"stream\":" << stream;
            auto const at = live.find(id);
            if (at == live.end())
                answer << ",\"skipped\":true";
            else
                allocator::recordStream(at->second, stream_of(stream));
        } else if (op == "complete") {
            rest >> stream;
            answer << ",\"stream\":" << stream;
            standin_complete(reinterpret_cast<void *>(stream));
        } else if (op == "set_memory_fraction") {
            double fraction = 1;
            rest >> fraction;
            answer << ",\"fraction\":" << fraction;
            allocator::setMemoryFraction(fraction, 0);
        } else if (op == "set_settings") {
            rest >> word;
            answer << ",\"settings\":" << quoted(word);
            allocator::setAllocatorSettings(word);
        } else if (op == "snapshot") {
            answer << ",\"segments\":";
            put_layout(answer);
        } else if (op == "stats") {
            answer << ",\"stats\":";
            put_stats(answer);
        } else {
            rest >> word;
            pool_operation(op, word, rest);
        }
    }

    // One line of the trace, one line of the answer.
    void line(u64 number, const std::string &text, std::ostream &out)
    {
        std::istringstream rest(text);
        std::string op, failure, kind;
        rest >> op;
        answer.str("");
        events.clear();
        try {
            operation(op, rest);
        } catch (const c10::OutOfMemoryError &e) {
            kind = "oom", failure = e.what_without_backtrace();
        } catch (const c10::Error &e) {
            kind = "error", failure = std::string("ERROR ") + e.what_without_backtrace();
        }
        out << "{\"i\":" << number << ",\"op\":\"" << op << "\"" << answer.str();
        if (!kind.empty()) out << ",\"" << kind << "\":" << quoted(failure);
        if (!events.empty()) out << ",\"ev\":[" << events << "]";
        out << "}\n";
    }
};

static double cpu_seconds()
{
    timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return double(t.tv_sec) + double(t.tv_nsec) * 1e-9;
}

// The same sequence as tests/bench/bench_replay.c.
static int bench(u64 live, u64 count)
{
    u64 state = 1;
    auto random = [&state] {
        unsigned long z = state += 0x9e3779b97f4a7c15ul;
        z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ul;
        z = (z ^ z >> 27) * 0x94d049bb133111ebul;
        return z ^ z >> 31;
    };
    std::vector<u64> sizes(4096), slots(1 << 16);
    for (auto &s : sizes) s = u64(std::pow(2.0, 9 + double(random() % 1000) / 1000 * 14));
    for (auto &s : slots) s = random() % live;
    std::vector<void *> blocks(live, nullptr);
    auto *a = allocator::get();
    double const start = cpu_seconds();
    for (u64 i = 0; i < count; i++) {
        void *&block = blocks[slots[i % slots.size()]];
        if (block) {
            a->raw_delete(block);
            block = nullptr;
        } else {
            block = a->raw_alloc_with_stream(sizes[i % sizes.size()], nullptr);
        }
    }
    double const seconds = cpu_seconds() - start;
    std::printf("real allocator: churn, up to %llu live: %.2f M events/s (%.0f ns), %lld reserved\n", live,
                double(count) / seconds / 1e6, seconds / double(count) * 1e9,
                static_cast<long long>(allocator::getDeviceStats(0).reserved_bytes[0].current));
    std::fflush(nullptr);
    _exit(0);
}

int main(int argc, char **argv)
{
    using prepare = void (*)(int64_t);
    auto const p2p = reinterpret_cast<prepare>(dlsym(RTLD_DEFAULT, "_ZN3c104cuda6detail21init_p2p_access_cacheEl"));
    if (p2p) p2p(1);
    c10::cuda::_internal::setHasPrimaryContext([](c10::DeviceIndex) { return true; });
    allocator::init(1);
    if (argc == 4 && std::string(argv[1]) == "bench") return bench(std::stoull(argv[2]), std::stoull(argv[3]));
    if (argc != 3) return 2;
    std::ifstream in(argv[1]);
    std::ofstream out(argv[2], std::ios::app);
#if TORCH >= 20200
    allocator::attachAllocatorTraceTracker(on_event);
#endif
    Driver driver;
    std::string text;
    for (u64 number = 0; std::getline(in, text);)
        if (!text.empty() && text[0] != '#') driver.line(number++, text, out);
    out << "{\"op\":\"final\",\"segments\":";
    put_layout(out);
    out << ",\"stats\":";
    put_stats(out);
    size_t free_bytes = 0, total_bytes = 0;
    cudaMemGetInfo(&free_bytes, &total_bytes);
    out << ",\"device_free\":" << free_bytes << ",\"device_total\":" << total_bytes << "}\n";
    out.close();
    _exit(0); // nothing of torch is torn down
}
