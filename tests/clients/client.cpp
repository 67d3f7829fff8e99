// client.cpp LIBRARY MODELS - a C++ program on the function table: owners for its objects, statuses
// as exceptions, runs of one session in many threads. Prints "ok" at the end.
#include "ort_abi.h"

#include <dlfcn.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

const OrtApi *api;

struct Error : std::runtime_error {
    OrtErrorCode code;
    Error(OrtErrorCode c, const char *text) : std::runtime_error(text), code(c) {}
};

void check(OrtStatus *status) {
    if (!status) return;
    Error error(api->GetErrorCode(status), api->GetErrorMessage(status));
    api->ReleaseStatus(status);
    throw error;
}

template <typename T> using Owned = std::unique_ptr<T, void (*)(T *)>;

template <typename T, typename Make> Owned<T> own(void (*release)(T *), Make make) {
    T *object = nullptr;
    check(make(&object));
    return Owned<T>(object, release);
}

void require(bool holds, const char *what) {
    if (!holds) throw std::runtime_error(what);
}

Owned<OrtValue> tensor(const OrtMemoryInfo *memory, std::vector<float> &data,
                       const std::vector<int64_t> &shape) {
    return own<OrtValue>(api->ReleaseValue, [&](OrtValue **out) {
        return api->CreateTensorWithDataAsOrtValue(memory, data.data(), data.size() * sizeof(float),
                                                   shape.data(), shape.size(),
                                                   ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, out);
    });
}

std::vector<float> run(OrtSession *session, const OrtMemoryInfo *memory, int64_t rows) {
    std::vector<float> x(static_cast<size_t>(rows) * 8);
    for (size_t i = 0; i < x.size(); i++) x[i] = static_cast<float>((i * 37 + 11) % 17) / 8 - 1;
    auto input = tensor(memory, x, {rows, 8});
    const OrtValue *inputs[] = {input.get()};
    const char *in_names[] = {"x"}, *out_names[] = {"y"};
    auto output = own<OrtValue>(api->ReleaseValue, [&](OrtValue **out) {
        return api->Run(session, nullptr, in_names, inputs, 1, out_names, 1, out);
    });
    const void *data = nullptr;
    check(api->GetTensorData(output.get(), &data));
    const float *y = static_cast<const float *>(data);
    return std::vector<float>(y, y + rows * 4);
}

void fails(OrtErrorCode code, const char *word, const std::function<void()> &call) {
    try {
        call();
    } catch (const Error &e) {
        require(e.code == code, "another error code");
        require(std::strstr(e.what(), word) != nullptr, e.what());
        return;
    }
    throw std::runtime_error("a wrong call succeeded");
}

void test(const std::string &models) {
    auto env = own<OrtEnv>(api->ReleaseEnv, [](OrtEnv **out) {
        return api->CreateEnv(ORT_LOGGING_LEVEL_ERROR, "client.cpp", out);
    });
    auto again = own<OrtEnv>(api->ReleaseEnv, [](OrtEnv **out) {
        return api->CreateEnv(ORT_LOGGING_LEVEL_ERROR, "again", out);
    });
    require(env.get() == again.get(), "two environments");
    auto memory = own<OrtMemoryInfo>(api->ReleaseMemoryInfo, [](OrtMemoryInfo **out) {
        return api->CreateCpuMemoryInfo(OrtDeviceAllocator, OrtMemTypeDefault, out);
    });
    auto options = own<OrtSessionOptions>(api->ReleaseSessionOptions, [](OrtSessionOptions **out) {
        return api->CreateSessionOptions(out);
    });
    check(api->SetIntraOpNumThreads(options.get(), 2));
    std::string path = models + "/mlp.onnx";
    auto session = own<OrtSession>(api->ReleaseSession, [&](OrtSession **out) {
        return api->CreateSession(env.get(), path.c_str(), options.get(), out);
    });
    std::vector<float> expected = run(session.get(), memory.get(), 3);
    require(std::fabs(expected[0] - 4.9483f) < 1e-3f, "another result");

    std::vector<std::thread> threads;
    bool same[8] = {};
    for (int t = 0; t < 8; t++)
        threads.emplace_back([&, t] {
            bool all = true;
            for (int i = 0; i < 200; i++)
                all = all && run(session.get(), memory.get(), 3) == expected;
            same[t] = all;
        });
    for (auto &thread : threads) thread.join();
    for (bool s : same) require(s, "threads disagree");

    std::vector<float> x(8);
    auto wrong = tensor(memory.get(), x, {8, 1});
    const OrtValue *inputs[] = {wrong.get()};
    const char *in_names[] = {"x"}, *out_names[] = {"y"};
    OrtValue *out = nullptr;
    fails(ORT_INVALID_ARGUMENT, "x", [&] {
        check(api->Run(session.get(), nullptr, in_names, inputs, 1, out_names, 1, &out));
    });
    fails(ORT_NO_SUCHFILE, "nowhere", [&] {
        OrtSession *none = nullptr;
        check(api->CreateSession(env.get(), "nowhere.onnx", options.get(), &none));
    });
}

} // namespace

int main(int argc, char **argv) {
    if (argc != 3) return 2;
    void *library = dlopen(argv[1], RTLD_NOW);
    void *symbol = library ? dlsym(library, "OrtGetApiBase") : nullptr;
    if (!symbol) {
        std::cerr << argv[1] << ": " << dlerror() << "\n";
        return 1;
    }
    api = reinterpret_cast<const OrtApiBase *(*)()>(symbol)()->GetApi(ORT_API_VERSION);
    try {
        test(argv[2]);
    } catch (const std::exception &e) {
        std::cerr << e.what() << "\n";
        return 1;
    }
    std::cout << "ok\n";
    return 0;
}
