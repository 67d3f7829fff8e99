# codecs.cmake - the libraries that decode pictures, and what is compiled for each.
#
# Makes the objects sinter_codecs, and sinter_codecs_plain, which need no library and are what the
# Sinter libraries contain unless SINTER_IMAGE_CODECS is ON. Sets LIBRARY_CODECS and
# LIBRARY_CODEC_TARGETS, what the libraries take; SINTER_CODEC_DEFINITIONS, which tell what is there;
# and for the installed package SINTER_CODEC_REQUIRES and SINTER_CODEC_FINDS.

add_library(sinter_codecs_plain OBJECT src/codecs/image.c src/codecs/bmp.c src/codecs/pnm.c)
target_include_directories(sinter_codecs_plain PRIVATE src include)
add_library(sinter_codecs OBJECT src/codecs/image.c src/codecs/bmp.c src/codecs/pnm.c)
target_include_directories(sinter_codecs PRIVATE src include)
target_compile_options(sinter_codecs PRIVATE ${SINTER_FUZZ_FLAGS})
set(SINTER_CODEC_TARGETS)
set(SINTER_CODEC_DEFINITIONS)
set(SINTER_CODEC_MODULES)  # names for pkg-config ...
set(SINTER_CODEC_PREFIXES) # ... and those of their targets

function(sinter_codec name prefix module file)
  pkg_check_modules(${prefix} QUIET IMPORTED_TARGET ${module})
  if(NOT ${prefix}_FOUND)
    if(SINTER_IMAGE_CODECS STREQUAL "AUTO")
      message(STATUS "${module} not found: ImageDecoder will not decode its pictures")
      return()
    endif()
    message(FATAL_ERROR "${module} not found, but SINTER_IMAGE_CODECS is ON")
  endif()
  target_sources(sinter_codecs PRIVATE src/codecs/${file}.c)
  list(APPEND SINTER_CODEC_TARGETS PkgConfig::${prefix})
  list(APPEND SINTER_CODEC_DEFINITIONS SNI_HAVE_${name}=1)
  list(APPEND SINTER_CODEC_MODULES ${module})
  list(APPEND SINTER_CODEC_PREFIXES ${prefix})
  foreach(list TARGETS DEFINITIONS MODULES PREFIXES)
    set(SINTER_CODEC_${list} ${SINTER_CODEC_${list}} PARENT_SCOPE)
  endforeach()
endfunction()

if(SINTER_IMAGE_CODECS STREQUAL "ON")
  find_package(PkgConfig REQUIRED)
elseif(SINTER_IMAGE_CODECS STREQUAL "AUTO")
  find_package(PkgConfig QUIET)
elseif(NOT SINTER_IMAGE_CODECS STREQUAL "OFF")
  message(FATAL_ERROR "SINTER_IMAGE_CODECS is ${SINTER_IMAGE_CODECS}, not AUTO, ON or OFF")
endif()
if(PkgConfig_FOUND AND NOT SINTER_IMAGE_CODECS STREQUAL "OFF")
  sinter_codec(PNG PNG libpng png)
  sinter_codec(JPEG JPEG libjpeg jpeg)
  sinter_codec(WEBP WEBP libwebp webp)
  sinter_codec(TIFF TIFF libtiff-4>=4.5 tiff) # 4.5: limits and messages of one file
  sinter_codec(JP2 OPENJPEG libopenjp2 jp2)
endif()
target_compile_definitions(sinter_codecs PRIVATE ${SINTER_CODEC_DEFINITIONS})
target_link_libraries(sinter_codecs PRIVATE ${SINTER_CODEC_TARGETS})

# A program that links the static library takes the full set of decoders instead of the library's.
function(sinter_use_codecs target)
  target_sources(${target} PRIVATE $<TARGET_OBJECTS:sinter_codecs>)
  target_link_libraries(${target} PRIVATE ${SINTER_CODEC_TARGETS})
endfunction()

set(LIBRARY_CODECS sinter_codecs)
set(LIBRARY_CODEC_TARGETS ${SINTER_CODEC_TARGETS})
if(NOT SINTER_IMAGE_CODECS STREQUAL "ON")
  set(LIBRARY_CODECS sinter_codecs_plain)
  set(LIBRARY_CODEC_TARGETS)
  set(SINTER_CODEC_MODULES)
  set(SINTER_CODEC_PREFIXES)
endif()
# For sinter.pc: "libpng, libtiff-4 >= 4.5".
list(JOIN SINTER_CODEC_MODULES ", " SINTER_CODEC_REQUIRES)
string(REPLACE ">=" " >= " SINTER_CODEC_REQUIRES "${SINTER_CODEC_REQUIRES}")
# For sinter-config.cmake: the targets that the static library names. Where they are not found, the
# shared library, which does not need them, can be used all the same.
set(SINTER_CODEC_FINDS)
if(SINTER_CODEC_MODULES)
  string(APPEND SINTER_CODEC_FINDS "find_package(PkgConfig QUIET)\n")
endif()
foreach(prefix module IN ZIP_LISTS SINTER_CODEC_PREFIXES SINTER_CODEC_MODULES)
  string(APPEND SINTER_CODEC_FINDS
         "if(PkgConfig_FOUND)\n"
         "  pkg_check_modules(${prefix} QUIET IMPORTED_TARGET ${module})\n"
         "endif()\n"
         "if(NOT TARGET PkgConfig::${prefix})\n"
         "  add_library(PkgConfig::${prefix} INTERFACE IMPORTED)\n"
         "endif()\n")
endforeach()
