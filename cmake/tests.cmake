# tests.cmake - what `ctest` runs in one build folder. tools/test.sh runs several of them.
#
# Labels choose what a build runs: `quick` checks of the source, `unit`, `ops`, `conformance`,
# `models`, `install`, and `threads` for what the thread sanitizer is given.

set(TOOLS ${PROJECT_SOURCE_DIR}/tools)
set(TESTS ${PROJECT_SOURCE_DIR}/tests)
set(SHARED ${PROJECT_SOURCE_DIR}/../shared CACHE PATH "Folder of large test data, if there is one")
find_program(PYTHON NAMES python3 PATHS /usr/bin NO_DEFAULT_PATH)

# A test that runs a command; exit code 77 means that it had to be skipped.
function(sinter_test name labels)
  add_test(NAME ${name} COMMAND ${ARGN} WORKING_DIRECTORY ${PROJECT_BINARY_DIR}
           COMMAND_EXPAND_LISTS)
  set_tests_properties(${name} PROPERTIES LABELS "${labels}" SKIP_RETURN_CODE 77 TIMEOUT 1800
                       ENVIRONMENT "TSAN_OPTIONS=die_after_fork=0")
endfunction()

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
    if(program MATCHES "threadpool|team|concurren|thread|mapping|server_pair")
      list(APPEND labels threads)
    endif()
    if(program STREQUAL test_alloc_failure)
      foreach(function malloc calloc realloc aligned_alloc strdup strndup free)
        target_link_options(${program} PRIVATE -Wl,--wrap=${function})
      endforeach()
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
        sinter_test(${name}.${tier} "${labels}" env SINTER_ISA=${tier} $<TARGET_FILE:${program}>)
      endforeach()
    endif()
  endforeach()
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
  sinter_test(${name} unit ${program} ${TESTS}/fuzz/corpus/${fuzzer})
endforeach()

# ---- Vector kernels: every one of every tier against plain C; `kernels --bench` measures them ----

file(GLOB KERNEL_TEST_SOURCES CONFIGURE_DEPENDS ${TESTS}/kernels/*.c)
add_executable(kernels ${KERNEL_TEST_SOURCES})
target_include_directories(kernels PRIVATE src ${TESTS}/kernels)
target_link_libraries(kernels PRIVATE sinter_static)
sinter_test(kernels.checked unit kernels)
if(TARGET sinter_avx512 AND CMAKE_C_COMPILER_ID STREQUAL GNU AND NOT SINTER_SANITIZE)
  sinter_test(kernels.spills unit ${TOOLS}/check_spills.py $<TARGET_OBJECTS:sinter_avx2>
              $<TARGET_OBJECTS:sinter_avx512>)
endif()

# ---- Checks of the source ----

foreach(check includes length words format)
  sinter_test(source.${check} quick ${TOOLS}/check_${check}.sh)
endforeach()
sinter_test(source.exports quick ${TOOLS}/check_exports.sh $<TARGET_FILE:sinter_shared>)
sinter_test(source.ort_exports quick ${TOOLS}/check_ort_exports.sh $<TARGET_FILE:sinter_ort>)
sinter_test(source.header quick ${TOOLS}/check_header.sh ${CMAKE_C_COMPILER})

# ---- Operators ----

file(GLOB OPS_SOURCES CONFIGURE_DEPENDS ${TESTS}/ops/*.c)
add_executable(run_ops ${OPS_SOURCES})
target_include_directories(run_ops PRIVATE src)
target_link_libraries(run_ops PRIVATE sinter_static)
sinter_use_codecs(run_ops)
sinter_test(ops.text ops run_ops ${TESTS}/ops)

# ---- What the program runs ----

if(TARGET sinter_cli)
  set(PROGRAM $<TARGET_FILE:sinter_cli>)
  sinter_test(source.operators quick ${TOOLS}/check_operators.sh ${PROGRAM})
  sinter_test(cli "cli;unit" ${TESTS}/cli/test_cli.py ${PROGRAM})
  sinter_test(server "server;unit" ${TESTS}/server/test_server.py ${PROGRAM})
  sinter_test(conformance.debian conformance ${TOOLS}/run_conformance.sh ${PROGRAM} debian)
  sinter_test(conformance.onnx conformance ${TOOLS}/run_conformance.sh ${PROGRAM} ${SHARED})
  sinter_test(conformance.levels levels ${TOOLS}/run_levels.sh ${PROGRAM} ${SHARED})
  foreach(suite conformance-history:history contrib-cases:contrib models:models)
    string(REPLACE ":" ";" pair ${suite})
    list(GET pair 0 folder)
    list(GET pair 1 name)
    sinter_test(suite.${name} suites ${TOOLS}/run_suite.sh ${PROGRAM} ${SHARED}/${folder}
                tests/onnx/expected_failures_${name}.txt)
  endforeach()
  sinter_test(suite.tiers suites ${TOOLS}/run_tiers.sh ${PROGRAM} ${SHARED})
  sinter_test(suite.differential suites ${TOOLS}/run_differential.sh ${PROGRAM})
  sinter_test(models.exported models ${TOOLS}/run_models.sh ${PROGRAM})
  sinter_test(models.opset13 models ${TOOLS}/run_models.sh ${PROGRAM} 13)
  foreach(tier baseline avx2) # the best one is what the test above runs
    sinter_test(models.${tier} models ${TOOLS}/run_models.sh ${PROGRAM})
    set_property(TEST models.${tier} APPEND PROPERTY ENVIRONMENT SINTER_ISA=${tier})
  endforeach()
  sinter_test(models.threads models ${TOOLS}/run_threads.sh ${PROGRAM})
  sinter_test(models.optimised models ${TOOLS}/run_optimised.sh ${PROGRAM})
  add_executable(lazy_weights ${TESTS}/models/lazy_weights.c)
  target_link_libraries(lazy_weights PRIVATE sinter_static)
  sinter_test(models.big models ${TOOLS}/run_big_model.sh ${PROGRAM} $<TARGET_FILE:lazy_weights>)
endif()
sinter_test(install.example install ${TOOLS}/check_install.sh ${PROJECT_BINARY_DIR})

# ---- Other languages ----

function(sinter_client_test name)
  sinter_test(clients.${name} clients ${ARGN})
  set_property(TEST clients.${name} APPEND PROPERTY ENVIRONMENT
               SINTER_LIBRARY=$<TARGET_FILE:sinter_shared>)
endfunction()

add_executable(ort_robust ${TESTS}/clients/robust.c)
target_include_directories(ort_robust PRIVATE src/ort ${TESTS}/clients)
target_link_libraries(ort_robust PRIVATE Threads::Threads ${CMAKE_DL_LIBS})
sinter_test(clients.ort_robust "clients;unit;threads" ${TOOLS}/run_ort_clients.sh robust
            ${PROJECT_BINARY_DIR})
if(SINTER_SANITIZE)
  set_property(TEST clients.ort_robust APPEND PROPERTY ENVIRONMENT SINTER_TEST_SANITIZED=1)
else()
  foreach(client c cxx node)
    sinter_test(clients.ort_${client} clients ${TOOLS}/run_ort_clients.sh ${client}
                ${PROJECT_BINARY_DIR})
  endforeach()
  sinter_test(clients.programs clients ${TESTS}/clients/programs/run.sh ${PROJECT_BINARY_DIR})
  if(TARGET sinter_cli)
    sinter_test(clients.custom_op clients ${TOOLS}/run_custom_op.sh ${PROGRAM})
    sinter_test(clients.optimised clients ${TOOLS}/run_written.sh ${PROGRAM})
  endif()
endif()
if(NOT SINTER_SANITIZE) # their interpreters and compilers are not built with sanitizers
  sinter_client_test(python ${PYTHON} -W ignore ${TESTS}/python/test_package.py)
  sinter_client_test(backend ${TOOLS}/run_backend.sh)
  sinter_client_test(grpc ${TOOLS}/run_grpc.sh $<TARGET_FILE:sinter_cli>)
  sinter_client_test(page ${TOOLS}/run_page.sh $<TARGET_FILE:sinter_cli>)
  foreach(language go rust)
    sinter_client_test(${language} ${TOOLS}/check_languages.sh ${PROJECT_BINARY_DIR} ${language})
  endforeach()
endif()
