# server.cmake - the server (`sinter serve`), a static library that the program links, and what it
# shares with the program. Neither is part of libsinter.
#
# GnuTLS gives it TLS, nghttp2 gRPC, zlib packed bodies; without them it is built all the same and says so when it
# is asked for what it lacks.

file(GLOB SINTER_COMMON_SOURCES CONFIGURE_DEPENDS common/*.c)
add_library(sinter_common STATIC ${SINTER_COMMON_SOURCES})
target_compile_options(sinter_common PRIVATE ${SINTER_FUZZ_FLAGS})
target_include_directories(sinter_common PUBLIC ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/include)

file(GLOB_RECURSE SINTER_SERVER_SOURCES CONFIGURE_DEPENDS server/*.c)
# The page at / becomes an array of bytes.
set(SINTER_PAGE ${PROJECT_SOURCE_DIR}/server/api/page.html)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${SINTER_PAGE})
file(READ ${SINTER_PAGE} SINTER_PAGE_HEX HEX)
string(LENGTH "${SINTER_PAGE_HEX}" SINTER_PAGE_SIZE)
math(EXPR SINTER_PAGE_SIZE "${SINTER_PAGE_SIZE} / 2")
string(REGEX REPLACE "(..)" "0x\\1," SINTER_PAGE_HEX "${SINTER_PAGE_HEX}")
file(CONFIGURE OUTPUT page_data.c CONTENT "extern const unsigned char srv_page_html[];
extern const unsigned srv_page_size;
const unsigned char srv_page_html[] = {@SINTER_PAGE_HEX@};
const unsigned srv_page_size = @SINTER_PAGE_SIZE@;
" @ONLY)

add_library(sinter_server STATIC ${SINTER_SERVER_SOURCES} ${PROJECT_BINARY_DIR}/page_data.c)
target_include_directories(sinter_server PRIVATE ${PROJECT_SOURCE_DIR} src)
target_compile_options(sinter_server PRIVATE ${SINTER_FUZZ_FLAGS})
target_link_libraries(sinter_server PUBLIC sinter_common sinter_static Threads::Threads m)

find_package(PkgConfig QUIET)
function(sinter_server_library name module package what)
  if(PkgConfig_FOUND)
    pkg_check_modules(SERVER_${name} QUIET IMPORTED_TARGET ${module})
  endif()
  if(SERVER_${name}_FOUND)
    target_link_libraries(sinter_server PUBLIC PkgConfig::SERVER_${name})
    target_compile_definitions(sinter_server PRIVATE SINTER_HAVE_${name}=1)
  else()
    message(STATUS "${module} not found: the server will have no ${what} (Debian: ${package})")
  endif()
endfunction()
sinter_server_library(GNUTLS gnutls libgnutls28-dev TLS)
sinter_server_library(NGHTTP2 libnghttp2 libnghttp2-dev gRPC)
if(NOT SERVER_NGHTTP2_FOUND)
  file(GLOB SINTER_GRPC_SOURCES CONFIGURE_DEPENDS server/net/h2*.c server/api/grpc*.c)
  set_source_files_properties(${SINTER_GRPC_SOURCES} PROPERTIES HEADER_FILE_ONLY ON)
endif()
sinter_server_library(ZLIB zlib zlib1g-dev "packed bodies")

# Fuzzers and unit tests of the server: fuzz_http, fuzz_json, fuzz_grpc, fuzz_load_client and their
# replays, test_server_*. Those of the program's file formats, fuzz_npy and fuzz_npz, take its sources.
function(sinter_use_server target)
  if(target MATCHES "_np[yz]$")
    target_sources(${target} PRIVATE cli/formats/npy.c cli/formats/npz.c cli/formats/element.c
                   cli/formats/text.c)
    target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR})
    target_link_libraries(${target} PRIVATE sinter_common)
    if(SERVER_ZLIB_FOUND)
      target_link_libraries(${target} PRIVATE PkgConfig::SERVER_ZLIB)
      target_compile_definitions(${target} PRIVATE SINTER_HAVE_ZLIB=1)
    endif()
  endif()
  if(target MATCHES "_(http|json|grpc|load_client)$|^test_server_")
    target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR} src)
    target_link_libraries(${target} PRIVATE sinter_server)
    target_compile_definitions(${target} PRIVATE SINTER_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
    if(SERVER_ZLIB_FOUND)
      target_compile_definitions(${target} PRIVATE SINTER_HAVE_ZLIB=1)
    endif()
  endif()
endfunction()

# Takes what cannot be built here out of a list of fuzzers' sources.
function(sinter_buildable_fuzzers list)
  if(NOT SERVER_NGHTTP2_FOUND)
    list(FILTER ${list} EXCLUDE REGEX "fuzz_grpc\\.c$")
  endif()
  set(${list} ${${list}} PARENT_SCOPE)
endfunction()
