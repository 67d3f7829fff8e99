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
    Error(OrtErrorCode c, const char *text) : std::runtime_error(text), code(c) {
    }
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

// An operator whose functions throw.
struct Thrower : OrtCustomOp {
    bool create = false, compute = false, infer = false;

    Thrower() : OrtCustomOp{} {
        version = 18;
        GetName = [](const OrtCustomOp *) { return "Thrower"; };
        GetExecutionProviderType = [](const OrtCustomOp *) { return "CPUExecutionProvider"; };
        GetInputType = [](const OrtCustomOp *, size_t) {
            return ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT;
        };
        GetInputTypeCount = [](const OrtCustomOp *) { return size_t{1}; };
        GetOutputType = GetInputType;
        GetOutputTypeCount = GetInputTypeCount;
        CreateKernelV2 = [](const OrtCustomOp *op, const OrtApi *, const OrtKernelInfo *,
                            void **kernel) -> OrtStatusPtr {
            auto self = static_cast<const Thrower *>(op);
            if (self->create) throw std::runtime_error("create");
            *kernel = const_cast<Thrower *>(self);
            return nullptr;
        };
        KernelComputeV2 = [](void *kernel, OrtKernelContext *context) -> OrtStatusPtr {
            std::string local(100, 'x'); // unwinding destroys it
            if (static_cast<Thrower *>(kernel)->compute) throw local;
            int64_t dims[] = {2};
            OrtValue *out = nullptr;
            void *data = nullptr;
            check(api->KernelContext_GetOutput(context, 0, dims, 1, &out));
            check(api->GetTensorMutableData(out, &data));
            static_cast<float *>(data)[0] = static_cast<float *>(data)[1] = 3;
            return nullptr;
        };
        KernelDestroy = [](void *) {};
        InferOutputShapeFn = [](const OrtCustomOp *op, OrtShapeInferContext *) -> OrtStatusPtr {
            if (static_cast<const Thrower *>(op)->infer) throw 7;
            return nullptr;
        };
    }
};

// Makes a session of the model "thrower" and runs it.
void run_thrower(const std::string &models, OrtEnv *env, const OrtMemoryInfo *memory, Thrower &op) {
    auto options = own<OrtSessionOptions>(api->ReleaseSessionOptions, [&](OrtSessionOptions **out) {
        return api->CreateSessionOptions(out);
    });
    auto domain = own<OrtCustomOpDomain>(api->ReleaseCustomOpDomain, [&](OrtCustomOpDomain **out) {
        return api->CreateCustomOpDomain("test", out);
    });
    check(api->CustomOpDomain_Add(domain.get(), &op));
    check(api->AddCustomOpDomain(options.get(), domain.get()));
    auto session = own<OrtSession>(api->ReleaseSession, [&](OrtSession **out) {
        return api->CreateSession(env, (models + "/thrower.onnx").c_str(), options.get(), out);
    });
    std::vector<float> x(2);
    auto input = tensor(memory, x, {2});
    const OrtValue *inputs[] = {input.get()};
    const char *in_names[] = {"x"}, *out_names[] = {"y"};
    auto output = own<OrtValue>(api->ReleaseValue, [&](OrtValue **out) {
        return api->Run(session.get(), nullptr, in_names, inputs, 1, out_names, 1, out);
    });
    void *data = nullptr;
    check(api->GetTensorMutableData(output.get(), &data));
    require(static_cast<float *>(data)[1] == 3, "the operator was not run");
}

void test_exceptions(const std::string &models) {
    auto env = own<OrtEnv>(api->ReleaseEnv, [](OrtEnv **out) {
        return api->CreateEnv(ORT_LOGGING_LEVEL_FATAL, "throws", out);
    });
    auto memory = own<OrtMemoryInfo>(api->ReleaseMemoryInfo, [](OrtMemoryInfo **out) {
        return api->CreateCpuMemoryInfo(OrtArenaAllocator, OrtMemTypeDefault, out);
    });
    for (int i = 0; i < 100; i++) {
        Thrower none, create, compute, infer;
        create.create = compute.compute = infer.infer = true;
        run_thrower(models, env.get(), memory.get(), none);
        for (Thrower *op : {&create, &compute, &infer}) {
            bool thrown = false;
            try {
                run_thrower(models, env.get(), memory.get(), *op);
            } catch (const Error &e) {
                thrown = strstr(e.what(), "threw an exception") != nullptr;
            }
            require(thrown, "an exception was no status");
            require(std::uncaught_exceptions() == 0, "an exception is still on its way");
        }
    }
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
        test_exceptions(argv[2]);
    } catch (const std::exception &e) {
        std::cerr << e.what() << "\n";
        return 1;
    }
    std::cout << "ok\n";
    return 0;
}
