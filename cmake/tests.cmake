# tests.cmake - what `ctest` runs in one build folder. tools/test.sh runs several of them.
#
# Labels choose what a build runs: `quick` checks of the source, `unit`, `ops`, `conformance`,
# `models`, `install`, `threads` for what the thread sanitizer is given, and `tier` for what runs again
# on lower tiers of kernels. The targets programs_quick, programs_unit, programs_ops, programs_attack, programs_conformance and
# programs_threads build what tests with that label run.

set(TESTS ${PROJECT_SOURCE_DIR}/tests)
set(SHARED ${PROJECT_SOURCE_DIR}/../shared CACHE PATH "Folder of large test data, if there is one")
find_program(PYTHON NAMES python3 PATHS /usr/bin NO_DEFAULT_PATH)
set(CHECK ${PYTHON} ${TESTS}/source/check.py)
foreach(label quick unit ops attack conformance threads)
  add_custom_target(programs_${label})
endforeach()

# Seconds of the tests that take longest, so that they are started first.
set(COSTS
    conformance.levels=34 suite.tiers=30 server=17 cli=13 data.models17=12 data.models13=12
    unit.cpu_winograd=10 clients.grpc=11 clients.ort_node=11 models.threads=10 suite.differential=10
    source.tidy=60 clients.page=9 clients.go=8 conformance.onnx=6 unit.rewrite=5 unit.cpu_blocked=4
    unit.cpu_inner_product=4 unit.cpu_emulated=4 unit.cpu_attention=4)

# A test that runs a command; exit code 77 means that it had to be skipped.
function(sinter_test name labels)
  add_test(NAME ${name} COMMAND ${ARGN} WORKING_DIRECTORY ${PROJECT_BINARY_DIR}
           COMMAND_EXPAND_LISTS)
  set_tests_properties(${name} PROPERTIES LABELS "${labels}" SKIP_RETURN_CODE 77 TIMEOUT 1800
                       ENVIRONMENT "TSAN_OPTIONS=die_after_fork=0")
  foreach(cost ${COSTS})
    string(REGEX REPLACE "\\.(baseline|avx2|avx512)$" "" plain ${name})
    if(cost MATCHES "^(.+)=(.+)$" AND plain STREQUAL CMAKE_MATCH_1)
      set_property(TEST ${name} PROPERTY COST ${CMAKE_MATCH_2})
    endif()
  endforeach()
endfunction()

# Says which labels' tests run a program.
function(sinter_test_program target)
  foreach(label ${ARGN})
    add_dependencies(programs_${label} ${target})
  endforeach()
endfunction()

# Says that a test needs generated data: onnx, models13 or models17.
function(sinter_needs name)
  set_property(TEST ${name} PROPERTY FIXTURES_REQUIRED ${ARGN})
endfunction()

# ---- Data that several tests use ----

sinter_test(data.onnx data ${TESTS}/onnx/generate.sh)
sinter_test(data.models13 data ${TESTS}/models/export.sh 13)
sinter_test(data.models17 data ${TESTS}/models/export.sh 17)
foreach(data onnx models13 models17)
  set_property(TEST data.${data} PROPERTY FIXTURES_SETUP ${data})
endforeach()

# ---- Unit tests: one program for each tests/unit/test_*.c ----

find_library(CMOCKA cmocka)
find_path(CMOCKA_INCLUDE cmocka.h)
file(GLOB_RECURSE UNIT_SOURCES CONFIGURE_DEPENDS ${TESTS}/unit/test_*.c)
if(CMOCKA AND CMOCKA_INCLUDE)
  foreach(source ${UNIT_SOURCES})
    get_filename_component(program ${source} NAME_WE)
    string(REPLACE "test_" "unit." name ${program})
    add_executable(${program} ${source})
    target_include_directories(${program} PRIVATE src ${TESTS}/unit ${CMOCKA_INCLUDE})
    target_link_libraries(${program} PRIVATE sinter_static ${CMOCKA})
    target_compile_definitions(${program} PRIVATE SINTER_SOURCE_DIR="${PROJECT_SOURCE_DIR}"
                               SINTER_SHARED_DIR="${SHARED}")
    set(labels unit)
    if(program MATCHES "threadpool|work_stealing|provider|concurren|thread|mapping|server_pair")
      list(APPEND labels threads)
    endif()
    sinter_test_program(${program} ${labels})
    if(program STREQUAL test_alloc_failure)
      foreach(function malloc calloc realloc aligned_alloc strdup strndup free)
        target_link_options(${program} PRIVATE -Wl,--wrap=${function})
      endforeach()
    endif()
    if(program STREQUAL test_provider)
      target_compile_definitions(${program} PRIVATE GUARDED="$<TARGET_FILE:guarded>")
      add_dependencies(${program} guarded)
    endif()
    if(program STREQUAL test_cpu_compressed)
      target_link_options(${program} PRIVATE -Wl,--wrap=sni_costs_get)
    endif()
    if(program MATCHES "test_cpu_(emulated|blocked)$")
      target_link_options(${program} PRIVATE -Wl,--wrap=sni_emulated_kernels_get)
    endif()
    if(program STREQUAL test_image)
      target_compile_definitions(${program} PRIVATE ${SINTER_CODEC_DEFINITIONS})
      sinter_use_codecs(${program})
    endif()
    sinter_use_server(${program})
    if(program STREQUAL test_model_body)
      target_link_options(${program} PRIVATE -Wl,--wrap=sni_op_find)
    endif()
    sinter_test(${name} "${labels}" ${program})
    if(program MATCHES "test_cpu")
      set(tiers baseline avx2) # the best one is what runs without being asked
      if(program MATCHES "test_cpu_(integer|coded)")
        list(APPEND tiers avx512)
      endif()
      foreach(tier ${tiers})
        sinter_test(${name}.${tier} "${labels};tier" env SINTER_ISA=${tier} $<TARGET_FILE:${program}>)
      endforeach()
    endif()
  endforeach()
elseif("$ENV{CI}" STREQUAL true)
  message(FATAL_ERROR "cmocka not found (Debian: libcmocka-dev)")
else()
  message(STATUS "cmocka not found: no unit tests (Debian: libcmocka-dev)")
endif()

# ---- What fuzzers found: tests/fuzz/corpus/NAME goes through tests/fuzz/NAME.c again ----

file(GLOB FUZZ_SOURCES CONFIGURE_DEPENDS ${TESTS}/fuzz/fuzz_*.c)
sinter_buildable_fuzzers(FUZZ_SOURCES)
foreach(source ${FUZZ_SOURCES})
  get_filename_component(fuzzer ${source} NAME_WE)
  string(REPLACE "fuzz_" "replay_" program ${fuzzer})
  string(REPLACE "fuzz_" "corpus." name ${fuzzer})
  add_executable(${program} ${source} ${TESTS}/fuzz/replay.c)
  target_include_directories(${program} PRIVATE src)
  target_link_libraries(${program} PRIVATE sinter_static)
  sinter_use_codecs(${program})
  sinter_use_server(${program})
  sinter_test_program(${program} unit)
  sinter_test(${name} unit ${program} ${TESTS}/fuzz/corpus/${fuzzer})
endforeach()

# ---- Vector kernels: every one of every tier against plain C; `kernels --bench` measures them ----

file(GLOB KERNEL_TEST_SOURCES CONFIGURE_DEPENDS ${TESTS}/kernels/*.c)
add_executable(kernels ${KERNEL_TEST_SOURCES})
target_include_directories(kernels PRIVATE src ${TESTS}/kernels)
target_link_libraries(kernels PRIVATE sinter_static)
sinter_test_program(kernels unit)
sinter_test(kernels.checked unit kernels)
if(TARGET sinter_avx512 AND CMAKE_C_COMPILER_ID STREQUAL GNU AND NOT SINTER_SANITIZE)
  sinter_test(kernels.spills unit ${TESTS}/kernels/check_spills.py $<TARGET_OBJECTS:sinter_avx2>
              $<TARGET_OBJECTS:sinter_avx512>)
endif()

# ---- Checks of the source ----

foreach(check includes length names inc heads words docs format)
  sinter_test(source.${check} quick ${CHECK} ${check})
endforeach()
sinter_test_program(sinter_shared quick)
sinter_test_program(sinter_ort quick)
sinter_test(source.exports quick ${CHECK} exports $<TARGET_FILE:sinter_shared>)
sinter_test(source.ort_exports quick ${CHECK} ort_exports $<TARGET_FILE:sinter_ort>)
sinter_test(source.header quick ${CHECK} header ${CMAKE_C_COMPILER})
if(NOT SINTER_SANITIZE)
  sinter_test(source.tidy tidy ${CHECK} tidy ${PROJECT_BINARY_DIR})
  sinter_test(source.abi abi ${CHECK} abi ${PROJECT_BINARY_DIR})
endif()

# ---- Operators ----

file(GLOB OPS_SOURCES CONFIGURE_DEPENDS ${TESTS}/ops/*.c)
add_executable(run_ops ${OPS_SOURCES})
target_include_directories(run_ops PRIVATE src)
target_link_libraries(run_ops PRIVATE sinter_static)
sinter_use_codecs(run_ops)
sinter_test_program(run_ops ops attack)
sinter_test(ops.text ops run_ops ${TESTS}/ops)
file(GLOB OPS_CASES CONFIGURE_DEPENDS ${TESTS}/ops/*.txt)
set(ATTACK_EVERY 1) # one of so many variants
if(SINTER_SANITIZE)
  set(ATTACK_EVERY 31)
endif()
sinter_test(attack.operators attack ${TESTS}/ops/attack.py --every ${ATTACK_EVERY}
            ${PROJECT_BINARY_DIR}/attack $<TARGET_FILE:run_ops> ${OPS_CASES})

# ---- Providers ----

add_library(guarded MODULE ${TESTS}/provider/guarded.c)
target_link_libraries(guarded PRIVATE sinter_shared Threads::Threads)
add_library(threshold MODULE examples/provider/threshold.c)
target_include_directories(threshold PRIVATE include)
target_link_libraries(threshold PRIVATE m)
foreach(library guarded threshold)
  set_target_properties(${library} PROPERTIES C_VISIBILITY_PRESET hidden)
  sinter_test_program(${library} ops unit conformance)
endforeach()
sinter_test(ops.provider ops run_ops --provider guarded $<TARGET_FILE:guarded> ${TESTS}/ops)

# ---- What the program runs ----

if(TARGET sinter_cli)
  set(PROGRAM $<TARGET_FILE:sinter_cli>)
  sinter_test_program(sinter_cli quick unit conformance)
  sinter_test(source.operators quick ${CHECK} operators ${PROGRAM})
  sinter_test(cli "cli;unit" ${TESTS}/cli/test_cli.py ${PROGRAM})
  if(NOT SINTER_SANITIZE) # sanitizers take the same calls over
    add_library(faults MODULE ${TESTS}/faults/faults.c)
    set_target_properties(faults PROPERTIES C_VISIBILITY_PRESET default)
    target_link_libraries(faults PRIVATE ${CMAKE_DL_LIBS})
    sinter_test_program(faults unit)
    sinter_test(faults unit ${TESTS}/faults/test_faults.py ${PROGRAM} $<TARGET_FILE:faults>)
  endif()
  sinter_test(server "server;unit" ${TESTS}/server/test_server.py ${PROGRAM})
  sinter_test(conformance.debian conformance ${TESTS}/onnx/conformance.sh ${PROGRAM} debian)
  sinter_test(conformance.onnx conformance ${TESTS}/onnx/conformance.sh ${PROGRAM} ${SHARED})
  sinter_needs(conformance.debian onnx)
  sinter_test(provider "cli;unit" ${TESTS}/provider/test_provider.py ${PROGRAM}
              $<TARGET_FILE:guarded> $<TARGET_FILE:threshold> $<TARGET_FILE:run_ops>)
  sinter_test(conformance.provider conformance ${TESTS}/onnx/conformance.sh ${PROGRAM} ${SHARED}
              --provider-library $<TARGET_FILE:guarded> --provider guarded,sinter.min_nodes=1)
  if(SINTER_SANITIZE) # a process ends while a queue's thread does, over which clang's search for leaks falls
    set_property(TEST conformance.provider APPEND PROPERTY ENVIRONMENT ASAN_OPTIONS=detect_leaks=0)
  endif()
  sinter_test(conformance.levels levels ${TESTS}/onnx/levels.sh ${PROGRAM} ${SHARED})
  foreach(suite conformance-history:history contrib-cases:contrib models:models)
    string(REPLACE ":" ";" pair ${suite})
    list(GET pair 0 folder)
    list(GET pair 1 name)
    sinter_test(suite.${name} suites ${TESTS}/onnx/suite.sh ${PROGRAM} ${SHARED}/${folder}
                tests/onnx/expected_failures_${name}.txt)
  endforeach()
  sinter_test(suite.tiers suites ${TESTS}/onnx/tiers.sh ${PROGRAM} ${SHARED})
  sinter_test(suite.differential suites ${TESTS}/differential/differential.sh ${PROGRAM})
  sinter_test(models.exported models ${TESTS}/models/exported.sh ${PROGRAM})
  sinter_needs(models.exported models17)
  sinter_test(models.opset13 models ${TESTS}/models/exported.sh ${PROGRAM} 13)
  sinter_needs(models.opset13 models13)
  foreach(tier baseline avx2) # the best one is what the test above runs
    sinter_test(models.${tier} models ${TESTS}/models/exported.sh ${PROGRAM})
    sinter_needs(models.${tier} models17)
    set_property(TEST models.${tier} APPEND PROPERTY ENVIRONMENT SINTER_ISA=${tier})
  endforeach()
  sinter_test(models.threads models ${TESTS}/models/threads.sh ${PROGRAM})
  sinter_needs(models.threads models17)
  sinter_test(models.optimised models ${TESTS}/models/optimised.sh ${PROGRAM})
  sinter_needs(models.optimised models13 models17)
  sinter_test(models.quantize models ${TESTS}/models/quantize.sh ${PROGRAM})
  add_executable(lazy_weights ${TESTS}/models/lazy_weights.c)
  target_link_libraries(lazy_weights PRIVATE sinter_static)
  sinter_test(models.big models ${TESTS}/models/big.sh ${PROGRAM} $<TARGET_FILE:lazy_weights>)
endif()
sinter_test(install.example install ${TESTS}/install/install.sh ${PROJECT_BINARY_DIR})

# ---- Other languages ----

function(sinter_client_test name)
  sinter_test(clients.${name} clients ${ARGN})
  set_property(TEST clients.${name} APPEND PROPERTY ENVIRONMENT
               SINTER_LIBRARY=$<TARGET_FILE:sinter_shared>)
endfunction()

add_executable(ort_robust ${TESTS}/clients/robust.c)
target_include_directories(ort_robust PRIVATE src/ort ${TESTS}/clients)
target_link_libraries(ort_robust PRIVATE Threads::Threads ${CMAKE_DL_LIBS})
sinter_test_program(ort_robust unit threads)
sinter_test_program(sinter_ort unit threads)
sinter_test(clients.ort_robust "clients;unit;threads" ${TESTS}/clients/ort.sh robust
            ${PROJECT_BINARY_DIR})
if(SINTER_SANITIZE)
  set_property(TEST clients.ort_robust APPEND PROPERTY ENVIRONMENT SINTER_TEST_SANITIZED=1)
else()
  foreach(client c letter cxx node provider)
    sinter_test(clients.ort_${client} clients ${TESTS}/clients/ort.sh ${client}
                ${PROJECT_BINARY_DIR})
  endforeach()
  sinter_test(clients.programs clients ${TESTS}/clients/programs/run.sh ${PROJECT_BINARY_DIR})
  if(TARGET sinter_cli)
    sinter_test(clients.custom_op clients ${TESTS}/clients/custom_op.sh ${PROGRAM})
    sinter_test(clients.optimised clients ${TESTS}/clients/written.sh ${PROGRAM})
    sinter_needs(clients.optimised models13 models17)
  endif()
endif()
if(NOT SINTER_SANITIZE) # their interpreters and compilers are not built with sanitizers
  sinter_client_test(python ${PYTHON} -W ignore ${TESTS}/python/test_package.py)
  sinter_client_test(backend ${TESTS}/python/backend.sh)
  sinter_needs(clients.backend onnx)
  sinter_client_test(grpc ${TESTS}/server/grpc.sh $<TARGET_FILE:sinter_cli>)
  sinter_client_test(page ${TESTS}/server/page.sh $<TARGET_FILE:sinter_cli>)
  foreach(language go rust)
    sinter_client_test(${language} ${TESTS}/clients/languages.sh ${PROJECT_BINARY_DIR} ${language})
  endforeach()
endif()
