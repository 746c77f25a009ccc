#include "kernels.h"

#include <initializer_list>

#if defined(__aarch64__) && defined(__linux__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace {

bool runs_here(const Kernels* kernels) {
#if defined(__x86_64__)
    if (kernels == &AVX2) return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    if (kernels == &AVX512BF16 && !__builtin_cpu_supports("avx512bf16")) return false;
    if (kernels != &AVX512BW && kernels != &PLAIN && !__builtin_cpu_supports("avx512vnni")) return false;
    if (kernels != &PLAIN)
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
               __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#elif defined(__aarch64__) && defined(__linux__)
    if (kernels == &NEON) return getauxval(AT_HWCAP) & HWCAP_ASIMDDP;
#elif defined(__aarch64__) && defined(__APPLE__)
    if (kernels == &NEON) return true;  // all of Apple's own have it
#endif
    return kernels == &PLAIN;
}

}  // namespace

const Kernels* find_kernels(const char* name) {
    for (const Kernels* one : {
#if defined(__x86_64__)
             &AVX512BF16, &AVX512, &AVX512BW, &AVX2,
#elif defined(__aarch64__)
             &NEON,
#endif
             &PLAIN}) {
        bool wanted = name == nullptr || *name == 0 || std::strcmp(name, one->name) == 0;
        if (wanted && runs_here(one)) return one;
    }
    return nullptr;
}
