# find_package(oomsight) gives the target oomsight::oomsight. Libraries and headers are where the C compiler looks, or beside this file.
get_filename_component(_oomsight_libdir "${CMAKE_CURRENT_LIST_DIR}/../.." ABSOLUTE)
find_library(oomsight_LIBRARY NAMES oomsight HINTS "${_oomsight_libdir}" NO_CACHE)
find_path(oomsight_INCLUDE_DIR oomsight/oomsight.h HINTS "${_oomsight_libdir}/../include" "${_oomsight_libdir}/../../include" NO_CACHE)
if(NOT oomsight_LIBRARY OR NOT oomsight_INCLUDE_DIR)
  set(oomsight_FOUND FALSE)
  set(oomsight_NOT_FOUND_MESSAGE "liboomsight or oomsight/oomsight.h is missing beside ${CMAKE_CURRENT_LIST_DIR}")
elseif(NOT TARGET oomsight::oomsight)
  add_library(oomsight::oomsight UNKNOWN IMPORTED)
  set_target_properties(oomsight::oomsight PROPERTIES
    IMPORTED_LOCATION "${oomsight_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${oomsight_INCLUDE_DIR}")
endif()
unset(_oomsight_libdir)
